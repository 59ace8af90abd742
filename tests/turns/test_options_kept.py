"""What somebody set for a turn over the wire: the base holds for the thread, the model for what goes on, no more."""

from __future__ import annotations

from bot.simulation.anthropic import Say, Script
from tests.world import World
from tests.world.pulls import CONFIG, live, pull_of, write

OPUS, SONNET = "claude-opus-5-5", "claude-sonnet-5-5"


def released(world: World) -> None:
    """A branch beside the default one, with rules of its own."""
    world.github.commit(world.repo, "release", {"CLAUDE.md": "Rules of the release.\n"}, by="alice")


def asked_models(world: World) -> list[str]:
    """Of each turn, as the provider saw it."""
    return list({one.prompt: one.model for one in world.model.requests if one.has_tools}.values())


def said(world: World) -> str:
    return world.replies()[-1].body.replace("\n", " ")


async def test_a_plan_is_carried_out_on_the_branch_and_by_the_model_it_was_asked_of(world: World) -> None:
    released(world)
    world.model.default(Script([Say("1. Write it.")]))
    async with world.bot():
        world.say(f"/claude plan write it --base release --model {OPUS}")
        assert await world.outcome() == "planned", said(world)
        world.model.default(write("new.txt", "one"))
        world.say("/claude approve")
        assert await world.outcome(2) == "pull_request", said(world)
        [pull] = world.pulls()
        assert pull.base == "release" and world.repo.file(pull.head, "CLAUDE.md") is not None
        world.model.default(write("more.txt", "more"))
        world.say("/claude more")
        assert await world.outcome(3) == "pushed", said(world)
    assert "was changed to" not in said(world), "it is the base that was asked for"
    assert asked_models(world) == [OPUS, OPUS, SONNET]


async def test_what_was_saved_goes_on_and_is_repeated_on_the_base_it_was_begun_on(world: World) -> None:
    released(world)
    world.model.default(write("new.txt", "one", held="work"))
    async with world.bot():
        world.say(f"/claude write it --base release --model {OPUS}")
        await world.model.reached("work", timeout=60)
        world.say("/claude stop")
        assert await world.outcome() == "stopped", said(world)
        world.model.release("work")
        world.model.default(Script([Say("It is all there.")]))
        world.say("/claude retry")
        assert await world.outcome(2) == "pull_request", said(world)
        world.model.default(write("more.txt", "more"))
        world.say("/claude now write more of it")
        assert await world.outcome(3) == "pushed", said(world)
    [pull] = world.pulls()
    assert pull.base == "release" and world.repo.file(pull.head, "new.txt") == b"one\n"
    assert asked_models(world) == [OPUS, OPUS, SONNET]


async def test_a_base_that_an_open_pull_request_does_not_have_is_refused_with_what_to_do(world: World) -> None:
    released(world)
    world.model.default(write("new.txt", "one"))
    async with world.bot():
        pull = pull_of(world)
        stands = pull.head_sha
        world.say("/claude write it --base release", on=pull)
        assert await world.outcome(on=pull) == "failed", live(world, pull)
        assert f"#{pull.number}, whose base is `main`" in live(world, pull).replace("\n", " ")
        assert pull.head_sha == stands and "start another" not in live(world, pull)
        world.say("/claude write it --base main", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", live(world, pull)
        world.say("/claude write it")
        assert await world.outcome() == "pull_request", said(world)
        world.say("/claude write it --base release")
        assert await world.outcome(2) == "failed" and "`--new-branch`" in said(world), said(world)
        world.say("/claude write it --base release --new-branch")
        assert await world.outcome(3) == "pull_request", said(world)
    assert [one.base for one in world.pulls()] == ["main", "main", "release"]


async def test_the_repository_chooses_the_model_unless_a_command_names_one(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: f"model: {OPUS}\n"}, by="alice")
    world.model.default(Script([Say("So it is.")]))
    async with world.bot():
        world.say("/claude ask is it so?")
        assert await world.outcome() == "answered", said(world)
        assert f"· {OPUS} ·" in said(world)
        world.say(f"/claude ask is it still so? --model {SONNET}")
        assert await world.outcome(2) == "answered", said(world)
    assert asked_models(world) == [OPUS, SONNET]
