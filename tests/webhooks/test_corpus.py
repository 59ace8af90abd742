"""A slice of the corpus of comments over the wire: what asks for no work costs nothing and is answered."""

from __future__ import annotations

import pytest

from tests.world import World
from tests.world.pulls import write

FREE = {
    "/claude merge": "That stays with people",
    "/claude budget 10": "Did you mean `/claude continue +10`",
    "/claude continue 3": "Did you mean `/claude continue +3`",
    "/claude version": "forgehand --version",
    "/claude models": "`opus`, `sonnet`, `haiku`, `claude-",
    "/claude yes": "Nothing here is waiting for a yes or no",
    "/Claude status": "Nothing is running on this thread",
    "/claude: help": "| `/claude fix this …` |",
}


@pytest.mark.parametrize(("words", "said"), list(FREE.items()))
async def test_what_is_no_request_is_answered_for_nothing(world: World, words: str, said: str) -> None:
    async with world.bot():
        world.say(words)
        await world.github.changed(lambda: len(world.replies()) == 1, 30)
    assert said in world.replies()[0].body
    assert world.model.requests == [] and world.states() == []


async def test_thanks_get_a_heart_and_no_comment(world: World) -> None:
    async with world.bot():
        said = world.say("/claude thanks, great work!")
        await world.github.changed(lambda: [one.content for one in said.reactions] == ["heart"], 30)
    assert world.replies() == [] and world.model.requests == []


async def test_who_nearly_calls_us_is_told_once_how_to_begin(world: World) -> None:
    world.github.user("eve")
    async with world.bot():
        world.say("@claude fix this", by="eve")
        world.say("@claude fix this")
        await world.github.changed(lambda: len(world.replies()) == 1, 30)
        world.say("Hey @forgehand can you fix this?")
        world.say("/claude status")
        await world.github.changed(lambda: len(world.replies()) == 2, 30)
    begin, status = (one.body for one in world.replies())
    assert "begin a line with `/claude` or `@forgehand`" in begin and "Nothing is running" in status
    assert world.model.requests == []


@pytest.mark.parametrize("words", ["@Forgehand: write it", "/Claude, write it", "@forgehand[bot] write it"])
async def test_letter_case_and_a_colon_are_forgiven(world: World, words: str) -> None:
    world.model.default(write("new.txt", "one"))
    async with world.bot():
        world.say(words)
        assert await world.outcome() == "pull_request"
