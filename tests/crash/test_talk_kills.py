"""`kill -9` while a push is taken back, while a plan is approved, while words are passed on: each is done once."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bot.simulation.anthropic import Call, Say, Script
from tests.crash.process import Service
from tests.crash.test_kill_points import _redeliver_what_was_not_taken as redeliver
from tests.world import World

EVERY = os.environ.get("FORGEHAND_TESTS") == "all"
SLICE = 24
WRITE = Script([Call("Bash", {"command": "echo one >> a.txt", "description": "Write"}), Say("Written.")])


async def in_peace(world: World, words: str, outcome: str) -> None:
    service = await Service.start(world)
    assert service is not None
    world.say(words)
    assert await world.outcome(1) == outcome, world.replies()[0].body
    await world.github.idle()
    await service.stop()


async def pushed(world: World) -> None:
    world.model.default(WRITE)
    await in_peace(world, "/claude write", "pull_request")


async def planned(world: World) -> None:
    world.model.default(Script([Say("1. Write it.")]))
    await in_peace(world, "/claude plan it", "planned")
    world.model.default(WRITE)


def taken_back(world: World) -> None:
    [pull] = world.pulls()
    assert world.repo.file(pull.head, "a.txt") is None
    log = world.repo.diff("main", pull.head)
    assert log == "", "the branch is as before, by one commit more"


def carried_out(world: World) -> None:
    [pull] = world.pulls()
    assert world.repo.file(pull.head, "a.txt") == b"one\n"


async def transactions(world: World, words: str, outcome: str) -> int:
    service = await Service.start(world)
    assert service is not None
    world.say(words)
    assert await world.outcome(2) == outcome, world.replies()[-1].body
    await world.github.idle()
    return await service.stop()


async def killed(world: World, words: str, outcome: str, point: int) -> None:
    service = await Service.start(world, kill_at=point)
    if service is not None:
        world.say(words)
        await service.dies_before(world.outcome(2))
    again = await Service.start(world)
    assert again is not None
    if service is None:
        world.say(words)
    redeliver(world)
    try:
        assert await world.outcome(2) == outcome, world.replies()[-1].body
    finally:
        await again.stop()


@pytest.mark.acceptance("F01")
@pytest.mark.timeout(3600 if EVERY else 300)
@pytest.mark.parametrize(
    ("before", "words", "outcome", "check"),
    [
        (pushed, "/claude undo", "pushed", taken_back),
        (planned, "/claude approve", "pull_request", carried_out),
    ],
    ids=["undo", "approve"],
)
async def test_killed_in_the_middle_it_is_done_once(
    tmp_path: Path, before: Callable[[World], Awaitable[None]], words: str, outcome: str, check: Callable[[World], None]
) -> None:
    async with World.running(tmp_path / "golden") as world:
        await before(world)
        found = await transactions(world, words, outcome)
        check(world)
    assert found > 8
    for point in [one for one in range(1, found + 1) if EVERY or one % SLICE == found % SLICE]:
        async with World.running(tmp_path / f"at-{point}") as world:
            await before(world)
            await killed(world, words, outcome, point)
            assert len(world.replies()) == 2, f"at kill point {point}: {[one.body[:200] for one in world.replies()]}"
            check(world)
