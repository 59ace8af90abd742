"""Claude Code's own levers with the real program: a fallback, the pace of the model, the meter of its context."""

from __future__ import annotations

from bot.simulation.anthropic import Call, Fail, Say, Script, Wait
from tests.world import CONFIG, World

LOOK = Call("Bash", {"command": "ls", "description": "Look around"})
FIRST, UNPACED = "claude-sonnet-5-5", "claude-haiku-4-5"


def paces(world: World, model: str) -> set[int | None]:
    """The numbers of tokens by which the model was to pace itself."""
    asked = [one.body["output_config"] for one in world.model.requests if one.model == model and one.has_tools]
    return {(one.get("task_budget") or {}).get("total") for one in asked}


async def test_a_fallback_goes_on_at_its_own_price_and_the_comment_says_so(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: f"fallback: {UNPACED}"})
    world.model.default(Script([Fail(529, model=FIRST), LOOK, Wait("on"), Say("Because.")]))
    switched = f"`{FIRST}` is overloaded, so `{UNPACED}` goes on."
    async with world.bot():
        world.say("/claude ask why")
        await world.model.reached("on", timeout=60)
        running = await world.github.changed(lambda: switched in world.replies()[0].body and world.replies()[0].body)
        world.model.release("on")
        assert await world.outcome() == "answered"
    assert "· context " in str(running) and "% of 200 k" in str(running), running
    live = world.replies()[0].body
    assert switched in live
    assert f"{FIRST} $0.00 and {UNPACED} $0.0" in live
    assert "· context " not in live
    assert [one.model for one in world.model.requests] == [FIRST] * 3 + [UNPACED] * 2
    assert paces(world, FIRST) == {None}, "the fallback could not read the number"


async def test_the_model_paces_itself_by_what_is_left_unless_the_repository_says_no(world: World) -> None:
    world.model.default(Script([Say("Because.")]))
    async with world.bot():
        world.say("/claude ask why")
        assert await world.outcome() == "answered"
        assert paces(world, FIRST) == {500_000}, "five dollars"
        world.model.requests.clear()
        world.say("/claude ask why --budget 1.3 --fallback haiku")
        assert await world.outcome(2) == "answered"
        assert paces(world, FIRST) == {100_000}
        world.model.requests.clear()
        world.github.commit(world.repo, "main", {CONFIG: "pace: false"})
        world.say("/claude ask why --budget 0.3")
        assert await world.outcome(3) == "answered"
    assert paces(world, FIRST) == {None}


async def test_a_fallback_that_is_of_no_use_costs_nothing(world: World) -> None:
    async with world.bot():
        world.say("/claude fix this --fallback claude-next-1")
        world.say("/claude fix this --model opus --fallback claude-opus-5-5")
        world.say("/claude fix this --falback haiku")
        await world.github.changed(lambda: len(world.replies()) == 3, 30)
    said = [one.body for one in world.replies()]
    assert "does not know the price of the model `claude-next-1`" in said[0]
    assert "`--fallback` names `opus`, the model of `--model`." in said[1]
    assert "Did you mean `--fallback NAME`?" in said[2]
    assert world.model.requests == []
