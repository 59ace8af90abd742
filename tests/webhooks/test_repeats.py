"""Effects that follow the start of a turn happen even if GitHub loses them, and the turn starts once."""

from __future__ import annotations

from pathlib import Path

from bot.simulation.anthropic import Say, Script
from bot.simulation.github import Fault
from tests.world import World


async def test_an_answer_about_too_little_money_that_github_lost_is_given_again(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_SESSION_BUDGET="0.5", FORGEHAND_SESSION_CEILING="0.6") as world:
        world.model.default(Script([Say("Nothing to do.")]))
        lost = world.github.faults.add(Fault("POST /repos/*/issues/*/comments", "fail", status=502, skip=1, times=3))
        async with world.bot():
            world.say("/claude continue +100 look at it")
            [answer] = await world.github.changed(
                lambda: [one for one in world.replies() if "asked for" in one.body], 60
            )
            assert await world.outcome() == "no_change"
            world.say("/claude status")
            await world.github.changed(lambda: len(world.replies()) == 3, 60)
        assert lost.hits == 3
    assert "You asked for $100.00 more, but only $0.10 was added" in answer.body
    assert len(world.states()) == 1 and len(world.model.requests) == 1
