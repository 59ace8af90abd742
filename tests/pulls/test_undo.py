"""`undo` on a pull request: the whole of the last push goes, also a merge, also where an answer was lost, and once."""

from __future__ import annotations

import shutil

import pytest

from bot.simulation.anthropic import Say, Script
from bot.simulation.github import Fault
from bot.simulation.github.gitstore import git
from tests.pulls.test_resolve import SOLVE, conflicting
from tests.world import World
from tests.world.pulls import (
    CONFIG,
    WORKFLOW,
    WRITE,
    begun,
    cut_off_after_the_push,
    does,
    forbid,
    live,
    loses_the_push,
    parents,
    permit,
    pull_of,
    write,
)


@pytest.mark.parametrize("config", ["commits: verified\n", None])
async def test_what_was_saved_and_went_along_with_the_push_is_taken_back_with_it(
    world: World, config: str | None
) -> None:
    if config is not None:
        world.github.commit(world.repo, "main", {CONFIG: config}, by="alice")
    async with world.bot():
        pull = await begun(world)
        world.say("/claude stop", on=pull)
        assert await world.outcome(on=pull) == "stopped", live(world, pull)
        world.model.default(write("more.txt", "two"))
        world.say("/claude go on", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", live(world, pull)
        assert world.repo.file("feature", "new.txt") == b"one\n"
        world.say("/claude undo", on=pull)
        assert await world.outcome(3, on=pull) == "pushed", live(world, pull)
    assert world.repo.file("feature", "more.txt") is None and world.repo.file("feature", "new.txt") is None
    assert world.repo.file("feature", "calc.py") == b"a = 1\n"


async def test_a_merge_is_taken_back_also_where_the_cached_repository_was_lost(world: World) -> None:
    world.model.default(Script([SOLVE, Say("Done.")]))
    async with world.bot():
        pull = conflicting(world)
        world.say("/claude resolve", on=pull)
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
        [mirror] = (world.root / "data").rglob("*.git")
        shutil.rmtree(mirror)
        world.say("/claude undo", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", live(world, pull)
    assert world.repo.file("feature", "calc.py") == b"a = 1\n" and world.repo.file("feature", "theirs.txt") is None


@pytest.mark.acceptance("B07")
async def test_a_lost_answer_to_an_undo_is_recognised_under_what_others_pushed_since(world: World) -> None:
    world.model.default(write("new.txt", "one"))
    async with world.bot():
        pull = pull_of(world)
        world.say("/claude write it", on=pull)
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
        ours = pull.head_sha
        loses_the_push(world)
        world.say("/claude undo", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", live(world, pull)
    [undone] = parents(world, pull.head_sha)
    assert parents(world, undone) == [ours] and world.repo.file("feature", "new.txt") is None
    assert world.repo.file("feature", "later.txt") == b"3\n"


@pytest.mark.parametrize("heard", [False, True])
async def test_an_undo_that_had_arrived_is_told_so_though_its_branch_went_with_the_merge(
    world: World, heard: bool
) -> None:
    if not heard:  # of the merge, which ends what runs
        world.app.events.remove("pull_request")
    world.model.default(write("new.txt", "one"))
    async with world.bot():
        pull = pull_of(world)
        world.say("/claude write it", on=pull)
        assert await world.outcome(on=pull) == "pushed", live(world, pull)

        def merged() -> None:
            world.github.merge(pull, by="alice")
            world.github.set_branch(world.repo, "feature", None, by="alice")

        cut_off_after_the_push(world, merged)
        world.say("/claude undo", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", live(world, pull)
    assert "reverts what turn 1 pushed" in live(world, pull)
    assert f"#{pull.issue.number}, which has been merged since" in live(world, pull)
    assert world.repo.file("main", "new.txt") is None


async def test_a_push_that_had_arrived_is_told_so_though_its_requester_may_push_no_more(world: World) -> None:
    world.github.user("carol")
    async with world.bot():
        pull = await begun(world)
        cut_off_after_the_push(world, lambda: world.repo.grant("alice", "read"))
        world.model.release("work")
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
        assert f"as `{pull.head_sha[:12]}` while alice had write access" in live(world, pull)
        world.repo.grant("carol", "write")
        cut_off_after_the_push(world, lambda: world.repo.grant("carol", "read"))
        world.say("/claude undo", on=pull, by="carol")
        assert await world.outcome(2, on=pull) == "pushed", live(world, pull)
    assert f"as `{pull.head_sha[:12]}` while carol had write access" in live(world, pull)
    assert world.repo.file("feature", "new.txt") is None


@pytest.mark.acceptance("E03")
async def test_an_undo_that_github_does_not_commit_is_told_in_its_words(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: "commits: verified\n"}, by="alice")
    refused = Fault("POST /repos/*/git/commits", "fail", status=403, body='{"message": "Not today."}', times=5)
    world.model.default(write("new.txt", "one"))
    async with world.bot():
        pull = pull_of(world)
        world.say("/claude write it", on=pull)
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
        ours = pull.head_sha
        world.github.faults.add(refused)
        world.say("/claude undo", on=pull)
        assert await world.outcome(2, on=pull) == "refused", live(world, pull)
    assert "GitHub refused the push" in live(world, pull) and "Not today." in live(world, pull)
    assert pull.head_sha == ours


@pytest.mark.acceptance("E05")
@pytest.mark.parametrize("config", ["commits: verified\n", "commits: git\n"])
async def test_a_push_of_workflow_files_that_we_may_not_take_back_names_the_permission(
    world: World, config: str
) -> None:
    world.github.commit(world.repo, "main", {CONFIG: config}, by="alice")
    world.model.default(does(WRITE))
    permit(world)
    async with world.bot():
        pull = pull_of(world)
        world.say("/claude add a workflow", on=pull)
        assert await world.outcome(on=pull) == "refused", live(world, pull)
        world.say("/claude approve", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", live(world, pull)
        forbid(world)
        world.say("/claude undo", on=pull)
        assert await world.outcome(3, on=pull) == "refused", live(world, pull)
        assert f"this changes workflow files, which run with the repository's secrets (`{WORKFLOW}`)" in live(
            world, pull
        )
        assert "-on: push" in live(world, pull)
        world.say("/claude approve", on=pull)
        assert await world.outcome(4, on=pull) == "refused", live(world, pull)
        assert "Workflows: Read and write" in live(world, pull) and world.repo.file("feature", WORKFLOW)
        permit(world)
        world.say("/claude approve", on=pull)
        assert await world.outcome(5, on=pull) == "pushed", live(world, pull)
    assert world.repo.file("feature", WORKFLOW) is None


async def test_what_a_forced_push_took_away_is_not_said_to_be_taken_back(world: World) -> None:
    world.model.default(write("new.txt", "one"))
    async with world.bot():
        pull = pull_of(world)
        below = pull.head_sha
        world.say("/claude write it", on=pull)
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
        theirs = world.github.commit(world.repo, "feature", {"theirs.txt": "2\n"}, by="alice", onto=below)
        world.say("/claude undo", on=pull)
        assert await world.outcome(2, on=pull) == "refused", live(world, pull)
        assert "the push of turn 1 is no longer on it" in live(world, pull) and pull.head_sha == theirs
        [mirror] = (world.root / "data").rglob("*.git")
        shutil.rmtree(mirror)  # and the remote has thrown our commit away
        git(world.repo.path, "reflog", "expire", "--expire=now", "--all")
        git(world.repo.path, "gc", "--prune=now", "--quiet")
        world.say("/claude undo", on=pull)
        assert await world.outcome(3, on=pull) == "refused", live(world, pull)
    assert "the push of turn 1 is no longer on it" in live(world, pull) and pull.head_sha == theirs
