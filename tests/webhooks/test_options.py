"""Options wherever they stand, and what a command names, looked at before anything costs."""

from __future__ import annotations

import pytest

from bot.simulation.anthropic import Say, Script
from tests.world import World


async def refused(world: World, words: str) -> str:
    async with world.bot():
        world.say(words)
        await world.github.changed(lambda: len(world.replies()) == 1, 30)
    assert world.model.requests == [] and world.states() == []
    return world.replies()[0].body


async def test_an_option_in_mid_sentence_counts(world: World) -> None:
    world.model.default(Script([Say("Nothing to do.")]))
    async with world.bot():
        world.say("/claude fix this --budget 0.5 please --model opus, thanks")
        assert await world.outcome() == "no_change"
    [live] = world.replies()
    assert "of $0.50" in live.body and "fix this please thanks" in live.body and "--" not in live.body.split("\n\n")[2]
    assert {one.model for one in world.model.requests if one.has_tools} == {"claude-opus-5-5"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("/claude fix --budgt 0.5 this please", "Did you mean `--budget 5`?"),
        ("/claude fix this --budget lots please", "`--budget` takes an amount in US dollars above zero"),
        ("/claude fix this --model gpt-9", "It can use `opus`, `sonnet`, `haiku`, `claude-"),
        ("/claude review --model gpt-9", "It can use `opus`"),
        ("/claude fix this --base nowhere please", "The branch `nowhere` does not exist in this repository."),
        ("/claude plan --base nowhere the move", "The branch `nowhere` does not exist"),
        ("/claude add --color to the CLI", "put it in backticks"),
    ],
)
async def test_what_cannot_work_is_refused_before_anything_starts(world: World, words: str, said: str) -> None:
    answer = await refused(world, words)
    assert said in answer and "FORGEHAND_" not in answer
