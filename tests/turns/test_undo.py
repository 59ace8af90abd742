"""`undo`: the last push is taken back by a new commit, never by force; what cannot be undone back is said."""

from __future__ import annotations

import time

import pytest

from bot.simulation.anthropic import Call, Say, Script
from bot.simulation.github.threads import Pull
from tests.world import World


def write(name: str, words: str) -> Script:
    return Script([Call("Bash", {"command": f"echo '{words}' > {name}", "description": "Write"}), Say("Written.")])


async def pushed(world: World) -> Pull:
    world.model.default(write("a.txt", "one"))
    world.say("/claude write")
    assert await world.outcome() == "pull_request", world.replies()[0].body
    return world.pulls()[0]


@pytest.mark.quick
async def test_the_last_push_is_taken_back_by_a_new_commit_once(world: World) -> None:
    async with world.bot():
        pull = await pushed(world)
        first = world.repo.branch_sha(pull.head)
        requests = len(world.model.requests)
        world.say("/claude undo")
        assert await world.outcome(2) == "pushed", world.replies()[-1].body
        after = world.repo.branch_sha(pull.head)
        assert after != first and world.repo.file(pull.head, "a.txt") is None
        assert len(world.model.requests) == requests, "no model is asked"
        assert "claude" in world.replies()[0].body.split("<sub>")[-1]
        assert "claude" not in world.replies()[-1].body.split("<sub>")[-1] and "tokens" not in world.replies()[-1].body
        world.say("/claude retry")
        await world.github.changed(lambda: "would undo the push before" in world.replies()[-1].body, 20)
        assert len(world.states()) == 2, "which nobody has asked for"
        world.say("/claude undo")
        await world.github.changed(lambda: "no push of this conversation left" in world.replies()[-1].body, 20)
        assert len(world.states()) == 2, "it is refused at once"
    assert world.repo.branch_sha(pull.head) == after


async def test_a_push_that_came_after_the_words_is_not_taken_back_by_them(world: World) -> None:
    """Their delivery came late, or again under another name: they meant what stood there then."""
    ahead = 0.0
    async with world.bot(lambda: time.time() + ahead):
        pull = await pushed(world)
        world.app.hook_active = False
        late = world.github.comment_webhook(world.say("/claude undo"))
        world.app.hook_active = True
        ahead = 60.0
        world.model.default(write("b.txt", "two"))
        world.say("/claude write more")
        assert await world.outcome(2) == "pushed"
        stands = world.repo.branch_sha(pull.head)
        await world.deliver(late)
        assert await world.outcome(3) == "refused"
        assert f"turn 2 (`{str(stands)[:12]}`), came after you had written" in world.replies()[-1].body
    assert world.repo.branch_sha(pull.head) == stands


async def test_each_push_is_taken_back_in_turn_and_work_goes_on_from_there(world: World) -> None:
    async with world.bot():
        pull = await pushed(world)
        world.model.default(write("b.txt", "two"))
        world.say("/claude write more")
        assert await world.outcome(2) == "pushed"
        world.say("/claude undo")
        assert await world.outcome(3) == "pushed"
        assert world.repo.file(pull.head, "b.txt") is None and world.repo.file(pull.head, "a.txt") == b"one\n"
        world.say("/claude undo")
        assert await world.outcome(4) == "pushed"
        assert world.repo.file(pull.head, "a.txt") is None
        world.model.default(write("c.txt", "three"))
        world.say("/claude write again")
        assert await world.outcome(5) == "pushed", world.replies()[-1].body
    assert world.repo.file(pull.head, "c.txt") == b"three\n" and world.repo.file(pull.head, "a.txt") is None


async def test_what_others_have_pushed_stays(world: World) -> None:
    async with world.bot():
        pull = await pushed(world)
        world.github.commit(world.repo, pull.head, {"theirs.txt": "mine\n"}, by="alice")
        world.say("/claude undo")
        assert await world.outcome(2) == "pushed", world.replies()[-1].body
    assert world.repo.file(pull.head, "theirs.txt") == b"mine\n" and world.repo.file(pull.head, "a.txt") is None


async def test_a_later_change_of_the_same_lines_is_in_the_way(world: World) -> None:
    async with world.bot():
        pull = await pushed(world)
        world.github.commit(world.repo, pull.head, {"a.txt": "another\n"}, by="alice")
        stands = world.repo.branch_sha(pull.head)
        world.say("/claude undo")
        assert await world.outcome(2) == "refused"
        assert "cannot be undone" in world.replies()[-1].body
    assert world.repo.branch_sha(pull.head) == stands


async def test_a_merged_pull_request_is_not_taken_back_here(world: World) -> None:
    async with world.bot():
        pull = await pushed(world)
        world.github.merge(pull, by="alice")
        world.say("/claude undo")
        assert await world.outcome(2) == "refused"
    assert "is already merged" in world.replies()[-1].body


@pytest.mark.parametrize("by", ["alice", "eve"])
async def test_nothing_to_take_back_and_nobody_to_do_it(world: World, by: str) -> None:
    world.github.user("eve")
    world.repo.grant("eve", "read")
    async with world.bot():
        world.say("/claude undo", by=by)
        await world.github.changed(lambda: bool(world.replies()), 20)
    words = "Nothing has been pushed from this thread" if by == "alice" else "only take commands from people with"
    assert words in world.replies()[0].body
