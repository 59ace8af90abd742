"""Work on a pull request over the wire: it goes to the pinned head, on top of it, or beside it; never by force."""

from __future__ import annotations

import pytest

from tests.world import World
from tests.world.pulls import CONFIG, begun, live, parents, pull_of, write
from tests.world.work_under_way import rescued


async def test_the_work_goes_on_top_of_the_pinned_head_which_is_shown(world: World) -> None:
    world.model.default(write("new.txt", "one"))
    async with world.bot():
        pull = pull_of(world)
        pinned = pull.head_sha
        world.say("/claude write it", on=pull)
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
    head = world.repo.branch_sha("feature")
    assert head is not None and parents(world, head) == [pinned] and pull.head_sha == head
    assert f"from `{pinned[:12]}`" in live(world, pull)
    assert world.repo.file("feature", "new.txt") == b"one\n" and len(world.pulls()) == 1


@pytest.mark.acceptance("B07")
async def test_commits_that_others_pushed_meanwhile_stay_and_the_work_is_put_on_top(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: "checks:\n  - test -f new.txt\n"}, by="alice")
    async with world.bot():
        pull = await begun(world)
        theirs = world.github.commit(world.repo, "feature", {"theirs.txt": "2\n"}, by="alice")
        world.model.release("work")
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
    head = world.repo.branch_sha("feature")
    assert head is not None and parents(world, head) == [theirs]
    assert world.repo.file("feature", "theirs.txt") == b"2\n" and world.repo.file("feature", "new.txt") == b"one\n"
    assert f"put on top of `{theirs[:12]}`" in live(world, pull) and "ran before that" in live(world, pull)
    assert len(world.pulls()) == 1 and not rescued(world)


@pytest.mark.acceptance("E04")
async def test_work_that_does_not_fit_on_top_is_put_beside_it(world: World) -> None:
    async with world.bot():
        pull = await begun(world, "calc.py", "b = 2")
        theirs = world.github.commit(world.repo, "feature", {"calc.py": "c = 3\n"}, by="alice")
        world.model.release("work")
        assert await world.outcome(on=pull) == "pull_request", live(world, pull)
        assert world.repo.branch_sha("feature") == theirs, "nothing was pushed there"
        beside = world.pulls()[1]
        assert (beside.base, beside.state) == ("feature", "open") and beside.head.endswith("-1")
        assert f"Opened a pull request #{beside.number}" in live(world, pull) and "the work conflicts" in live(
            world, pull
        )
        world.model.default(write("more.txt", "more"))
        world.say("/claude more", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", live(world, pull)
    assert parents(world, world.repo.branch_sha("feature") or "") == [theirs], "the conversation stays with its own"
    assert world.repo.file(beside.head, "calc.py") == b"b = 2\n"


@pytest.mark.acceptance("B07")
async def test_after_a_forced_push_the_work_is_not_put_on_top_in_silence(world: World) -> None:
    async with world.bot():
        pull = await begun(world)
        main = world.repo.branch_sha("main")
        theirs = world.github.commit(world.repo, "feature", {"other.py": "x\n"}, by="alice", onto=main)
        world.model.release("work")
        assert await world.outcome(on=pull) == "pull_request", live(world, pull)
    assert world.repo.branch_sha("feature") == theirs
    assert world.pulls()[1].base == "feature" and "a separate branch" in live(world, pull).replace("\n", " ")


async def test_a_new_branch_is_asked_for_and_leaves_the_head_alone(world: World) -> None:
    world.model.default(write("new.txt", "one"))
    async with world.bot():
        pull = pull_of(world)
        world.github.protect(world.repo, "feature")
        stands = pull.head_sha
        world.say("/claude write it --new-branch", on=pull)
        assert await world.outcome(on=pull) == "pull_request", live(world, pull)
        beside = world.pulls()[1]
        assert (pull.head_sha, beside.base) == (stands, "feature")
        assert parents(world, beside.head_sha) == [stands]
        assert f"pull request #{beside.number}" in live(world, pull)
        world.say("/claude undo", on=pull)
        assert await world.outcome(2, on=pull) == "refused"
        assert f"#{beside.number} contains only turn 1's push; close it to undo" in live(world, pull)


async def test_on_an_issue_a_new_branch_begins_anew(world: World) -> None:
    world.model.default(write("a.txt", "one"))
    async with world.bot():
        world.say("/claude write it")
        assert await world.outcome() == "pull_request", world.replies()[-1].body
        world.model.default(write("b.txt", "two"))
        world.say("/claude --new-branch write the other")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
    first, second = world.pulls()
    assert (first.base, second.base) == ("main", "main")
    assert world.repo.file(second.head, "a.txt") is None and world.repo.file(second.head, "b.txt") == b"two\n"


@pytest.mark.acceptance("E02")
@pytest.mark.parametrize(
    ("taken", "instead"),
    [
        ("forgehand/1-{session}", "forgehand/1-{session}-1"),
        ("forgehand/1-{session}/below", "forgehand/1-{session}-1"),
        ("Forgehand/1-{session}", "forgehand/1-{session}-1"),
        ("forgehand", "forgehand-1-{session}-1"),
    ],
)
async def test_a_name_that_is_taken_or_almost_is_left_for_another(world: World, taken: str, instead: str) -> None:
    world.model.default(write("new.txt", "one", held="work"))
    async with world.bot():
        world.say("/claude write it")
        await world.model.reached("work", timeout=60)
        session = str(world.states()[0]["session"])
        stands = world.repo.branch_sha("main")
        world.github.set_branch(world.repo, taken.format(session=session), stands)
        world.model.release("work")
        assert await world.outcome() == "pull_request", world.replies()[-1].body
    assert world.pulls()[0].head == instead.format(session=session)
    assert world.repo.branch_sha(taken.format(session=session)) == stands
