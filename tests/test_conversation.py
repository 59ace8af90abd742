"""A conversation keeps its memory: over turns, a restart of the bot and the loss of its sandbox; or it says so."""

from __future__ import annotations

import pytest

from bot.simulation.anthropic import Say, Script
from tests.world import World

TURNS = 6


def last(world: World) -> str:
    """The conversation as the model was last sent it."""
    return str([one for one in world.model.requests if one.has_tools][-1].body["messages"])


async def talk(world: World, n: int) -> None:
    """One turn, in which the model says a word of its own that later turns must still know."""
    world.model.default(Script([], after=lambda _: Say(f"The secret of turn {n} is plum-{n}.")))
    world.say(f"/claude ask what is the secret of turn {n}?")
    assert await world.outcome(n) == "answered", world.replies()[-1].body


async def test_six_turns_over_a_restart_and_a_lost_sandbox(world: World) -> None:
    async with world.bot():
        for n in range(1, 4):
            await talk(world, n)
    async with world.bot():
        for n in range(4, TURNS + 1):
            await talk(world, n)
            assert [f"plum-{m}" in last(world) for m in range(1, n)] == [True] * (n - 1)
    assert len({state["session"] for state in world.states()}) == 1
    assert "could not be brought back" not in world.replies()[-1].body


@pytest.mark.parametrize("how", ["gone", "spoilt"])
async def test_what_cannot_be_resumed_goes_on_with_a_summary_and_says_so(world: World, how: str) -> None:
    async with world.bot():
        await talk(world, 1)
        for transcript in (world.root / "data" / "transcripts").iterdir():
            transcript.unlink() if how == "gone" else transcript.write_bytes(b"\0\0not a transcript")
        await talk(world, 2)
    assert "plum-1" in last(world), "from the summary"
    assert "could not be brought back" in world.replies()[-1].body
