"""A deploy in the middle of a session: the old process lets go, the box works on, the new process takes it up."""

from __future__ import annotations

import asyncio
import time

import pytest

from bot.simulation.anthropic import Call, Say, Script, Wait
from tests.crash.process import Service
from tests.crash.test_kill_points import whole
from tests.world import World

SLOW = Script(
    [
        Call("Bash", {"command": "sed -i 's/return round(/return max(0.0, round(/' shop.py", "description": "Fix"}),
        Call(
            "Bash",
            {
                "command": "for i in $(seq 40); do echo $i; sleep 0.1; done; sed -i 's/, 2)/, 2))/' shop.py",
                "description": "Work",
            },
        ),
        Wait("on"),
        Say("Done."),
    ]
)


@pytest.mark.acceptance("F02")
@pytest.mark.parametrize("how", ["terminate", "kill"])
async def test_a_session_under_way_survives_the_end_of_the_process(world: World, how: str) -> None:
    world.model.default(SLOW)
    first = await Service.start(world)
    assert first is not None
    world.say("/claude fix this")
    await world.github.changed(lambda: any("seq 40" in one.body for one in world.replies()), 30)
    began = time.monotonic()
    await (first.stop() if how == "terminate" else first.kill())
    assert time.monotonic() - began < 15
    second = await Service.start(world)
    assert second is not None
    try:
        await world.model.reached("on", timeout=40)
        world.model.release("on")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    finally:
        await second.stop()
    await whole(world)
    assert sum(len(one.tool_results) == 0 for one in world.model.requests if one.has_tools) == 1, "started once"


async def test_two_services_on_one_data_directory_are_one_too_many(world: World) -> None:
    first = await Service.start(world)
    assert first is not None
    second = await Service.start(world)
    assert second is None
    log = await asyncio.to_thread((world.root / "service.log").read_text)
    assert "already running" in log
    await first.stop()
