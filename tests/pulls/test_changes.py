"""What becomes of the work when its pull request changes under it: a clear end, nothing pushed amiss, nothing lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from bot.simulation.github import Fault
from bot.simulation.github.threads import Pull
from bot.store.base import Store
from tests.world import World
from tests.world.pulls import begun, cut_off_after_the_push, live, loses_the_push, parents, pull_of, write
from tests.world.work_under_way import rescued


def close(world: World, pull: Pull) -> None:
    world.github.close(pull, by="alice")


def merge(world: World, pull: Pull) -> None:
    world.github.merge(pull, by="alice")


def delete_head(world: World, pull: Pull) -> None:
    world.github.set_branch(world.repo, pull.head, None, by="alice")


def retarget(world: World, pull: Pull) -> None:
    main = world.repo.branch_sha("main")
    world.github.set_branch(world.repo, "release", main)
    pull.base, pull.base_sha = "release", main or ""


def to_draft(world: World, pull: Pull) -> None:
    pull.draft = True


async def stored(world: World, outcome: str) -> None:
    """Wait for the outcome of the only turn, of which no comment may tell."""
    async with Store.reading(world.database) as store, asyncio.timeout(60):
        while await store.many("SELECT outcome FROM turns") != [{"outcome": outcome}]:
            await asyncio.sleep(0.05)


async def worked_on(world: World, change: Callable[[World, Pull], None], expected: str) -> Pull:
    async with world.bot():
        pull = await begun(world)
        change(world, pull)
        world.model.release("work")
        assert await world.outcome(on=pull) == expected, live(world, pull)
    return pull


def is_saved(world: World, pull: Pull) -> bool:
    [(ref, sha)] = rescued(world).items()
    return ref in live(world, pull) and world.repo.file(sha, "new.txt") == b"one\n"


@pytest.mark.acceptance("B08")
@pytest.mark.parametrize("change", [close, merge, delete_head])
async def test_a_pull_request_that_ends_ends_the_work_which_is_saved(
    world: World, change: Callable[[World, Pull], None]
) -> None:
    pull = await worked_on(world, change, "stopped")
    assert "closed or merged in the meantime" in live(world, pull) and is_saved(world, pull)


@pytest.mark.acceptance("B08")
@pytest.mark.parametrize(
    ("change", "words"),
    [(close, "was closed in the meantime"), (merge, "was merged in the meantime"), (delete_head, "was closed")],
)
async def test_the_same_where_github_did_not_tell_us(
    world: World, change: Callable[[World, Pull], None], words: str
) -> None:
    world.app.events.remove("pull_request")
    pull = await worked_on(world, change, "refused")
    assert words in live(world, pull) and is_saved(world, pull)
    assert world.repo.branches().keys() <= {"main", "feature"}


@pytest.mark.acceptance("B08")
async def test_a_branch_without_a_pull_request_that_is_deleted_is_not_made_again(world: World) -> None:
    world.github.faults.add(Fault("POST /repos/*/pulls", "fail", status=422, body='{"message": "Not today."}', times=1))
    world.model.default(write("a.txt", "one"))
    async with world.bot():
        world.say("/claude write it")
        assert await world.outcome() == "pushed", world.replies()[-1].body
        [branch] = world.repo.branches().keys() - {"main"}
        world.model.default(write("new.txt", "one", held="work"))
        world.say("/claude more")
        await world.model.reached("work", timeout=60)
        world.github.set_branch(world.repo, branch, None)
        world.model.release("work")
        assert await world.outcome(2) == "refused", world.replies()[-1].body
    assert f"`{branch}` was deleted in the meantime" in world.replies()[-1].body and len(rescued(world)) == 1
    assert world.repo.branches().keys() == {"main"}


async def test_another_base_is_said_and_the_work_goes_to_its_branch(world: World) -> None:
    pull = await worked_on(world, retarget, "pushed")
    assert "was changed to `release` in the meantime" in live(world, pull)
    assert world.repo.file("feature", "new.txt") == b"one\n"


async def test_a_base_that_is_no_longer_meant_is_not_merged_in(world: World) -> None:
    world.github.commit(world.repo, "main", {"calc.py": "a = 0\n"}, by="alice")
    world.model.default(write("calc.py", "a = 3", held="work"))
    async with world.bot():
        pull = pull_of(world)
        tip = pull.head_sha
        world.github.commit(world.repo, "main", {"calc.py": "a = 2\n"}, by="alice")
        world.say("/claude resolve", on=pull)
        await world.model.reached("work", timeout=60)
        retarget(world, pull)
        world.model.release("work")
        assert await world.outcome(on=pull) == "refused", live(world, pull)
    assert "`release` while `main` was being merged in" in live(world, pull)
    assert world.repo.branch_sha("feature") == tip and len(rescued(world)) == 1


async def test_a_draft_is_worked_on_like_any_other(world: World) -> None:
    await worked_on(world, to_draft, "pushed")


@pytest.mark.acceptance("B08")
async def test_a_repository_that_is_archived_meanwhile_gets_nothing_and_the_work_is_kept_here(world: World) -> None:
    world.model.default(write("new.txt", "one", held="work"))
    async with world.bot():
        pull = pull_of(world)
        stands = pull.head_sha
        world.say("/claude write it", on=pull)
        await world.model.reached("work", timeout=60)
        world.repo.archived = True
        world.model.release("work")
        await stored(world, "refused")
        assert world.repo.branch_sha("feature") == stands and not rescued(world)
    [bundle] = (world.root / "data" / "kept").iterdir()
    assert bundle.read_bytes().startswith(b"# v2 git bundle")


async def test_work_that_was_saved_goes_on_on_top_of_what_others_pushed_since(world: World) -> None:
    async with world.bot():
        pull = await begun(world)
        world.say("/claude stop", on=pull)
        assert await world.outcome(on=pull) == "stopped", live(world, pull)
        theirs = world.github.commit(world.repo, "feature", {"theirs.txt": "2\n"}, by="alice")
        world.model.default(write("more.txt", "two"))
        world.say("/claude go on", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", live(world, pull)
    head = world.repo.branch_sha("feature") or ""
    assert parents(world, head) == [theirs]
    assert [world.repo.file(head, name) for name in ("new.txt", "more.txt", "theirs.txt")] == [
        b"one\n",
        b"two\n",
        b"2\n",
    ]


@pytest.mark.acceptance("B07")
@pytest.mark.parametrize("moved", [False, True])
async def test_a_lost_answer_is_recognised_also_under_what_others_pushed_since(world: World, moved: bool) -> None:
    world.model.default(write("new.txt", "one", held="work"))
    async with world.bot():
        pull = pull_of(world)
        below = pull.head_sha
        world.say("/claude write it", on=pull)
        await world.model.reached("work", timeout=60)
        if moved:
            below = world.github.commit(world.repo, "feature", {"theirs.txt": "2\n"}, by="alice")
        loses_the_push(world)
        world.model.release("work")
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
    [ours] = parents(world, pull.head_sha)
    assert parents(world, ours) == [below] and world.repo.file(ours, "new.txt") == b"one\n"
    assert world.repo.branches().keys() == {"main", "feature"} and not rescued(world)


@pytest.mark.acceptance("B07")
@pytest.mark.parametrize(("head_goes", "heard"), [(False, False), (True, False), (True, True)])
async def test_a_pull_request_that_is_merged_right_after_the_push_has_it(
    world: World, head_goes: bool, heard: bool
) -> None:
    def merged() -> None:
        merge(world, pull)
        if head_goes:
            delete_head(world, pull)

    if not heard:
        world.app.events.remove("pull_request")
    async with world.bot():
        pull = await begun(world)
        theirs = world.github.commit(world.repo, "feature", {"theirs.txt": "2\n"}, by="alice")
        cut_off_after_the_push(world, merged)
        world.model.release("work")
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
    assert "has been merged since" in live(world, pull) and not rescued(world)
    assert parents(world, pull.head_sha) == [theirs] and world.repo.file("main", "new.txt") == b"one\n"
