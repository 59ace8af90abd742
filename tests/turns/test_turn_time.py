"""How long a turn may work: the agent is told how late it is, and a plan that lets no sandbox live longer bounds it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.store import sessions
from bot.store.base import Store
from sandbox.local.folders import EnvironmentsFolder
from tests.environments.test_kept import Ahead
from tests.world import World
from tests.world.e2b import e2b_spine
from tests.world.environments import until

LOOK = Call("Bash", {"command": "ls"})


async def test_after_half_an_hour_the_agent_is_told_once(world: World) -> None:
    clock = Ahead()
    world.model.default(Script([LOOK, Wait("late"), LOOK, LOOK, Say("Done.")]))
    async with world.bot(clock):
        world.say("/claude fix this")
        await world.model.reached("late", timeout=60)
        clock.seconds = 30 * 60 + 1
        boxes = EnvironmentsFolder(world.root / "data" / "environments").path / "boxes"
        await until(lambda: is_told(boxes))
        world.model.release("late")
        assert await world.outcome() == "no_change", world.replies()[0].body
    told = str(world.model.requests[-1].messages)
    assert told.count("30 of the 60 minutes of this turn are gone") == 1


async def is_told(boxes: Path) -> bool:
    return await asyncio.to_thread(lambda: bool(list(boxes.glob("*/out/turn-1/*/*time-30*"))))


async def test_a_turn_ends_ten_minutes_before_the_plan_ends_its_sandbox(tmp_path: Path) -> None:
    async with e2b_spine(tmp_path, FORGEHAND_E2B_HOURS="0.5") as (world, _):
        world.model.default(Script([Say("Nothing to do.")]))
        async with world.bot():
            world.say("/claude fix this")
            assert await world.outcome() == "no_change"
        store = await Store.open_reader(world.database)
        [session] = await sessions.listing(store)
        [turn] = await sessions.turns_of(store, session.id)
        await store.close()
        assert 15 * 60 < turn.timeout_seconds <= 20 * 60
