"""The way on that an ending names can work."""

from __future__ import annotations

from tests.world import World
from tests.world.pulls import CONFIG, write


async def test_a_command_that_must_fail_again_is_not_offered_again(world: World) -> None:
    world.model.default(write("new.txt", "one"))
    world.github.commit(world.repo, "release", {"r.txt": "r\n"}, by="alice")
    async with world.bot():
        world.say("/claude write it")
        assert await world.outcome() == "pull_request"
        [pull] = world.pulls()
        world.say("/claude write more --base release", on=pull)
        assert await world.outcome(1, on=pull) == "failed"
        ending = world.replies(pull)[-1].body
        assert "The same command would fail again." in ending and "retry" not in ending, ending
        world.say("/claude retry", on=pull)
        told = await world.github.changed(lambda: world.replies(pull)[1:], 20)
    assert "it would fail again" in told[0].body and len(world.states(pull)) == 1


async def test_what_somebody_has_to_change_first_is_repeated_afterwards(world: World) -> None:
    world.model.default(write("new.txt", "one"))
    world.github.commit(world.repo, "main", {CONFIG: "setup: ['false']\n"})
    async with world.bot():
        world.say("/claude write it")
        assert await world.outcome() == "failed"
        ending = world.replies()[0].body
        assert "Once that is changed, comment `/claude retry`" in ending and "**Retry**" in ending
        world.github.commit(world.repo, "main", {CONFIG: "budget: 3\n"})
        world.say("/claude retry")
        assert await world.outcome(2) == "pull_request"
