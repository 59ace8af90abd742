"""A conversation keeps its memory: over turns, a restart of the bot and the loss of its sandbox; or it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.simulation.anthropic import Say, Script
from bot.store.base import Store
from bot.store.files import KeptFiles
from tests.environments.test_kept import Life
from tests.faults.test_faults import remove_environments
from tests.world import World
from tests.world.places import everywhere

TURNS = 6


def last(world: World) -> str:
    """The conversation as the model was last sent it."""
    return str([one for one in world.model.requests if one.has_tools][-1].body["messages"])


async def talk(world: World, n: int) -> None:
    """One turn, in which the model says a word of its own that later turns must still know."""
    world.model.default(Script([], after=lambda _: Say(f"The secret of turn {n} is plum-{n}.")))
    world.say(f"/claude ask what is the secret of turn {n}?")
    assert await world.outcome(n) == "answered", world.replies()[-1].body
    assert [f"plum-{m}" in last(world) for m in range(1, n)] == [True] * (n - 1)


@everywhere
async def test_six_turns_over_a_restart_and_a_lost_sandbox(kind: str, tmp_path: Path) -> None:
    """What was built in the environment goes with it; what was said stays."""
    async with Life.running(kind, tmp_path) as one:
        async with one.world.bot():
            for n in (1, 2):
                await talk(one.world, n)
                await one.until(1)
        first = one.there()
        async with one.world.bot():
            await talk(one.world, 3)
            await one.until(1)
            assert one.there() == first, "the restart lost nothing"
            await lose(one)
            await talk(one.world, 4)
            await one.until(1)
            assert one.there() != first
        await lose(one)
        async with one.world.bot():
            for n in (5, TURNS):
                await talk(one.world, n)
        assert len({state["session"] for state in one.world.states()}) == 1
        assert not any("could not be restored" in reply.body for reply in one.world.replies())


async def lose(one: Life) -> None:
    """The environment that is kept, behind the service's back."""
    if one.e2b is not None:
        for sandbox in one.e2b.live:
            await one.e2b.kill(sandbox.id)
    else:
        await remove_environments(one.world)


NO_MESSAGES = b'{"type":"summary","summary":"x","leafUuid":"y"}\n'
"""Well-formed, and nothing that the agent's program could go on from."""


async def spoil(world: World, how: str) -> None:
    """Change the transcripts wherever they are kept."""
    data, store = world.root / "data", await Store.open(world.database)
    async with KeptFiles.opened(store, data, None) as files:
        for name in await files.names("transcripts/"):
            if how == "gone":
                await files.forget(name)
            else:
                (data / name).write_bytes(NO_MESSAGES if how == "refused" else b"\0\0not a transcript")
                await files.save(name)
    await store.close()


@pytest.mark.parametrize("how", ["gone", "spoilt", "refused"])
async def test_what_cannot_be_resumed_goes_on_with_a_summary_and_says_so(world: World, how: str) -> None:
    async with world.bot():
        await talk(world, 1)
        await spoil(world, how)
        await talk(world, 2)
        assert "plum-1" in last(world), "from the summary"
        await talk(world, 3)
    assert "could not be restored" in world.replies()[1].body
    assert "could not be restored" not in world.replies()[2].body, "it remembers from here on"
