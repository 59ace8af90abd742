"""A checkpoint that the quarantine refuses is looked at once: not every few minutes, nor by the process after this."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.sessions.publish.rescue import EVERY_SECONDS
from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.store import sessions
from bot.store.base import Store
from tests.world import World

LARGE = Call("Bash", {"command": "truncate -s 101M large.bin", "description": "More than a file may have"})


class Ahead:
    """A clock that goes ahead of the real one."""

    seconds = 0.0

    def __call__(self) -> float:
        return time.time() + self.seconds


@pytest.mark.review("security-6")
async def test_what_was_refused_is_not_met_again_after_a_restart(world: World) -> None:
    clock = Ahead()
    world.model.default(Script([LARGE, Wait("go"), Say("Done.")]))
    data = Path(world.environment["FORGEHAND_DATA_DIR"])
    async with world.bot(clock):
        world.say("/claude write it")
        await world.model.reached("go", timeout=60)
        clock.seconds += EVERY_SECONDS + 1
        await until(lambda: [path.name for path in data.glob("turns/*/checkpoint.*")] == ["checkpoint.met"])
    [note] = data.glob("turns/*/checkpoint.met")
    looked = note.stat().st_mtime_ns
    assert await noted(data) is None
    async with world.bot(clock):
        clock.seconds += EVERY_SECONDS + 1
        async with asyncio.timeout(30):
            while await noted(data) is None:
                await asyncio.sleep(0.05)
        assert note.stat().st_mtime_ns == looked, "each look begins with a note"
        world.model.release("go")
        assert await world.outcome() == "refused", "and told at the end, as ever"


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not done():
            await asyncio.sleep(0.05)


async def noted(data: Path) -> float | None:
    """When the last look was that gave no reason to look again."""
    store = await Store.open_reader(data / "state.db")
    try:
        return (await sessions.running(store))[0].checkpoint_at
    finally:
        await store.close()
