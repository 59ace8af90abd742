"""Work that was saved and that the next turn finds whole: it is published as it was saved, and judged as its own."""

from __future__ import annotations

import re

from bot.simulation.anthropic import Say, Script
from bot.simulation.github.threads import Pull
from tests.world import World
from tests.world.pulls import CONFIG, does, parents, pull_of, write
from tests.world.work_under_way import rescued

NOTHING_LEFT = Script([Say("It was all done already.")])


async def stopped(world: World, on: Pull | None = None) -> None:
    world.model.default(write("new.txt", "one", held="work"))
    world.say("/claude write it", on=on)
    await world.model.reached("work", timeout=60)
    world.say("/claude stop", on=on)
    assert await world.outcome(on=on) == "stopped", world.replies(on)[0].body
    world.model.release("work")
    world.model.default(NOTHING_LEFT)


async def test_it_becomes_a_pull_request_though_nothing_was_left_to_do(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: "checks:\n  - test ! -e new.txt\n"}, by="alice")
    async with world.bot():
        await stopped(world)
        world.say("/claude continue")
        assert await world.outcome(2) == "pull_request", world.replies()[1].body
    [pull], body = world.pulls(), world.replies()[1].body
    assert pull.head_sha in rescued(world).values(), "as it was saved, without a commit more"
    at_github = f"/{world.repo.full_name}/commit/{pull.head_sha}#diff-"
    assert world.repo.file(pull.head, "new.txt") == b"one\n"
    assert re.search(rf"\[`new\.txt`\]\(\S+{re.escape(at_github)}[0-9a-f]{{64}}\) \+1 ", body), body
    assert "(passes on the base)" in body, body


async def test_what_was_held_for_a_secret_is_gone_on_with_once_that_is_removed(world: World) -> None:
    token = f"ghp_{'a1B2' * 9}"
    world.model.default(does(f"echo fine > good.txt && echo {token} > bad.txt"))
    async with world.bot():
        world.say("/claude write them")
        assert await world.outcome() == "refused", world.replies()[0].body
        world.say("/claude ask what is left to do?")
        assert await world.outcome(2) == "answered"
        world.model.default(does("rm bad.txt"))
        world.say("/claude remove the secret")
        assert await world.outcome(3) == "pull_request", world.replies()[2].body
        [pull] = world.pulls()
        assert world.repo.file(pull.head, "good.txt") == b"fine\n" and world.repo.file(pull.head, "bad.txt") is None
        world.model.default(does("echo more > more.txt"))
        world.say("/claude more")
        assert await world.outcome(4) == "pushed", world.replies()[3].body
    assert "`good.txt`" not in world.replies()[3].body, "what was published is not put on top once more"


async def test_on_a_pull_request_it_is_pushed_to_its_branch_and_can_be_taken_back(world: World) -> None:
    async with world.bot():
        pull = pull_of(world)
        stands = pull.head_sha
        await stopped(world, pull)
        world.say("/claude continue", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", world.replies(pull)[1].body
        assert parents(world, pull.head_sha) == [stands] and world.repo.file("feature", "new.txt") == b"one\n"
        world.say("/claude continue", on=pull)
        assert await world.outcome(3, on=pull) == "no_change", "it is there"
        world.say("/claude undo", on=pull)
        assert await world.outcome(4, on=pull) == "pushed", world.replies(pull)[3].body
    assert world.repo.file("feature", "new.txt") is None
