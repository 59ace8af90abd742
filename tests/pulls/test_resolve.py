"""`resolve` over the wire: the base is brought in by one merge; what git cannot merge, the agent solves."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from bot.models import TokenUsage
from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github.gitstore import entries, write_commit, write_object, write_tree
from bot.simulation.github.threads import Pull
from tests.world import World
from tests.world.pulls import CONFIG, WORKFLOW, live, loses_the_push, parents, permit, pull_of, write
from tests.world.work_under_way import rescued

LOOK = Call("Bash", {"command": "cat calc.py; git status --short; git log --format=%s -3", "description": "Look"})
UNSOLVE = Call("Bash", {"command": "printf '<<<<<<< mine\\n' > calc.py", "description": "Unsolve"})
SOLVE = Call("Bash", {"command": "printf 'a = 1 + 2\\n' > calc.py", "description": "Solve it"})


Entry = tuple[str, str]


def conflicting(world: World) -> Pull:
    world.github.commit(world.repo, "main", {"calc.py": "a = 0\n"}, by="alice")
    pull = pull_of(world, {"calc.py": "a = 1\n", "mine.txt": "mine\n"})
    world.github.commit(
        world.repo, "main", {"calc.py": "a = 2\n", "theirs.txt": "t\n"}, by="alice", message="Two is it"
    )
    return pull


async def test_conflicts_are_solved_in_one_merge_of_both(world: World) -> None:
    world.model.default(Script([LOOK, SOLVE, Say("One and two are three.")]))
    async with world.bot():
        pull = conflicting(world)
        tip, base = pull.head_sha, world.repo.branch_sha("main")
        assert base is not None
        world.say("/claude resolve", on=pull)
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
    head = world.repo.branch_sha("feature")
    assert head is not None and parents(world, head) == [tip, base]
    assert world.repo.file(head, "calc.py") == b"a = 1 + 2\n"
    assert world.repo.file(head, "theirs.txt") == b"t\n" and world.repo.file(head, "mine.txt") == b"mine\n"
    assert "1 file was in conflict" in live(world, pull) and f"from `{tip[:12]}` and `{base[:12]}`" in live(world, pull)
    [first] = [one for one in world.model.requests if one.has_tools][:1]
    assert "CONFLICT (content): Merge conflict in calc.py" in first.prompt and "Two is it" in first.prompt
    assert "Resolve the merge conflicts." in first.prompt
    [seen] = [result.text for one in world.model.requests for result in one.tool_results if "<<<<<<<" in result.text][
        :1
    ]
    assert f"<<<<<<< {tip}\na = 1\n||||||| " in seen and f"=======\na = 2\n>>>>>>> {base}" in seen


async def test_where_the_repository_wants_plans_a_merge_begins_with_one(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: "permission: plan\n"}, by="alice")
    world.model.default(Script([LOOK, Say("Take the sum of both.")]))
    async with world.bot():
        pull = conflicting(world)
        tip, base = pull.head_sha, world.repo.branch_sha("main")
        world.say("/claude resolve", on=pull)
        assert await world.outcome(on=pull) == "planned", live(world, pull)
        [first] = [one for one in world.model.requests if one.has_tools][:1]
        assert "Resolve the merge conflicts." in first.prompt and "Merge conflict in calc.py" in first.prompt
        assert "Write a plan" in first.prompt and pull.head_sha == tip
        world.say("/claude retry", on=pull)
        assert await world.outcome(2, on=pull) == "planned", live(world, pull)
        world.model.default(Script([SOLVE, Say("One and two are three.")]))
        world.say("/claude approve", on=pull)
        assert await world.outcome(3, on=pull) == "pushed", world.replies(pull)[-1].body
    assert parents(world, pull.head_sha) == [tip, base] and world.repo.file("feature", "calc.py") == b"a = 1 + 2\n"
    assert "Take the sum of both." in [one for one in world.model.requests if one.has_tools][-1].prompt


async def test_marks_that_are_left_are_refused_with_their_files(world: World) -> None:
    world.model.default(write("other.txt", "no idea"))
    async with world.bot():
        pull = conflicting(world)
        tip = pull.head_sha
        world.say("/claude resolve", on=pull)
        assert await world.outcome(on=pull) == "refused", live(world, pull)
    assert world.repo.branch_sha("feature") == tip and len(rescued(world)) == 1
    assert "still conflict markers in `calc.py`" in live(world, pull)


async def test_an_agent_that_changes_nothing_leaves_the_marks(world: World) -> None:
    world.model.default(Script([Say("I cannot.")]))
    async with world.bot():
        pull = conflicting(world)
        world.say("/claude resolve", on=pull)
        assert await world.outcome(on=pull) == "refused", live(world, pull)
    assert "`calc.py`" in live(world, pull)


async def test_a_file_that_one_side_deleted_may_stay_as_it_is(world: World) -> None:
    world.model.default(Script([Say("It stays deleted there, and is kept here.")]))
    world.github.commit(world.repo, "main", {"calc.py": "a = 0\n"}, by="alice")
    async with world.bot():
        pull = pull_of(world, {"calc.py": "a = 1\n"})
        tip = pull.head_sha
        path, main = world.repo.path, world.repo.branch_sha("main") or ""
        kept = {name: entry for name, entry in entries(path, main).items() if name != "calc.py"}
        base = write_commit(path, write_tree(path, kept), [main], "Away with it", who="alice", when=time.time())
        world.github.set_branch(world.repo, "main", base)
        world.say("/claude resolve", on=pull)
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
    assert parents(world, world.repo.branch_sha("feature") or "") == [tip, base]
    assert world.repo.file("feature", "calc.py") == b"a = 1\n"
    [first] = [one for one in world.model.requests if one.has_tools][:1]
    assert "modify/delete" in first.prompt


def _fork_in_the_road(world: World, ours: dict[str, Entry], theirs: dict[str, Entry]) -> Pull:
    """Both sides put these in the place of what they began with."""
    pull = pull_of(world, {"mine.txt": "mine\n"})
    for branch, new in (("feature", ours), ("main", theirs)):
        at = world.repo.branch_sha(branch) or ""
        kept = {name: entry for name, entry in entries(world.repo.path, at).items() if name not in ("fd", "fd/x")}
        tree = write_tree(world.repo.path, {**kept, **new})
        made = write_commit(world.repo.path, tree, [at], "Mine", who="alice", when=time.time())
        world.github.set_branch(world.repo, branch, made)
    return pull


def _blob(world: World, content: bytes) -> Entry:
    return "100644", write_object(world.repo.path, "blob", content)


async def test_what_cannot_be_marked_and_was_left_is_named_with_the_side_that_it_is_from(world: World) -> None:
    world.model.default(Script([SOLVE, Say("The picture is yours to choose.")]))
    world.github.commit(world.repo, "main", {"calc.py": "a = 0\n"}, by="alice")
    async with world.bot():
        mine = {"calc.py": _blob(world, b"a = 1\n"), "logo.png": _blob(world, b"\0mine"), "sub": ("160000", "1" * 40)}
        its = {"calc.py": _blob(world, b"a = 2\n"), "logo.png": _blob(world, b"\0its"), "sub": ("160000", "2" * 40)}
        pull = _fork_in_the_road(world, mine, its)
        world.say("/claude resolve", on=pull)
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
    assert "3 files were in conflict and the agent solved that" in live(world, pull)
    assert "without `main`'s changes: `logo.png`, `sub`." in live(world, pull)
    assert world.repo.file("feature", "logo.png") == b"\0mine"


async def test_a_name_that_git_made_up_for_what_was_in_the_way_is_not_pushed(world: World) -> None:
    world.model.default(Script([Say("Done.")]))
    async with world.bot():
        pull = _fork_in_the_road(world, {"fd": _blob(world, b"a file\n")}, {"fd/x": _blob(world, b"in a folder\n")})
        tip = pull.head_sha
        world.say("/claude resolve", on=pull)
        assert await world.outcome(on=pull) == "refused", live(world, pull)
        assert f"`fd~{tip}`" in live(world, pull)
        move = f"git mv -k fd~{tip} fd.txt; mv -n fd~{tip} fd.txt; ls"
        world.model.default(Script([Call("Bash", {"command": move, "description": "Move"}), Say("Moved.")]))
        world.say("/claude give it another name", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", world.replies(pull)[-1].body
    assert world.repo.file("feature", "fd.txt") == b"a file\n" and world.repo.file("feature", "fd/x") is not None


async def test_without_a_conflict_no_model_is_asked(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: "checks:\n  - test ! -e bad.txt\n"}, by="alice")
    async with world.bot():
        pull = pull_of(world)
        tip, base = pull.head_sha, world.github.commit(world.repo, "main", {"theirs.txt": "t\n"}, by="alice")
        world.say("/claude resolve", on=pull)
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
        assert parents(world, pull.head_sha) == [tip, base] and not world.model.requests
        assert "without a conflict, so no agent was needed" in live(world, pull)
        assert f"on a clean checkout of {pull.head_sha[:12]} in a fresh sandbox" in live(world, pull)
        assert "✓ `test ! -e bad.txt`" in live(world, pull)
        world.say("/claude resolve", on=pull)
        assert await world.outcome(2, on=pull) == "no_change"
        assert "Nothing to resolve" in live(world, pull)
        assert parents(world, pull.head_sha) == [tip, base]
        world.github.commit(world.repo, "main", {"bad.txt": "t\n"}, by="alice")
        world.say("/claude resolve", on=pull)
        assert await world.outcome(3, on=pull) == "pushed", live(world, pull)
        assert "✗ `test ! -e bad.txt` exit 1" in live(world, pull) and not world.model.requests
    assert world.repo.file("feature", "bad.txt") == b"t\n"


@pytest.mark.acceptance("B07")
async def test_a_head_that_moves_meanwhile_gets_the_merge_beside_it(world: World) -> None:
    world.model.default(Script([SOLVE, Wait("solved"), Say("Done.")]))
    async with world.bot():
        pull = conflicting(world)
        world.say("/claude resolve", on=pull)
        await world.model.reached("solved", timeout=60)
        theirs = world.github.commit(world.repo, "feature", {"more.txt": "m\n"}, by="alice")
        world.model.release("solved")
        assert await world.outcome(on=pull) == "pull_request", live(world, pull)
    assert world.repo.branch_sha("feature") == theirs and world.pulls()[1].base == "feature"


async def test_setup_that_stumbles_over_the_marks_does_not_end_it(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: "setup:\n  - '! grep -q \"<<<<\" calc.py'\n"}, by="alice")
    world.model.default(Script([SOLVE, Say("Done.")]))
    async with world.bot():
        pull = conflicting(world)
        world.say("/claude resolve", on=pull)
        assert await world.outcome(on=pull) == "pushed", live(world, pull)


@pytest.mark.acceptance("E05")
async def test_a_conflict_in_a_workflow_file_waits_for_a_yes_and_goes_as_the_merge_that_it_is(world: World) -> None:
    solve = f"printf 'on: [push, pull_request]\\n' > {WORKFLOW}"
    world.model.default(Script([Call("Bash", {"command": solve, "description": "Solve it"}), Say("On both.")]))
    world.github.commit(world.repo, "main", {WORKFLOW: "on: x\n"}, by="alice")
    permit(world)
    async with world.bot():
        pull = pull_of(world, {WORKFLOW: "on: push\n"})
        tip = pull.head_sha
        base = world.github.commit(world.repo, "main", {WORKFLOW: "on: pull_request\n"}, by="alice")
        world.say("/claude resolve", on=pull)
        assert await world.outcome(on=pull) == "refused", live(world, pull)
        held = live(world, pull)
        assert "-on: push\n+on: [push, pull_request]" in held and "<<<<<<<" not in held and pull.head_sha == tip
        [mirror] = (world.root / "data").rglob("*.git")
        shutil.rmtree(mirror)
        world.say("/claude approve", on=pull)
        assert await world.outcome(2, on=pull) == "pushed", world.replies(pull)[-1].body
    assert parents(world, pull.head_sha) == [tip, base]
    assert world.repo.file("feature", WORKFLOW) == b"on: [push, pull_request]\n"
    assert "1 file was in conflict and the agent solved that" in world.replies(pull)[-1].body


async def test_a_workflow_file_in_which_marks_are_left_is_not_on_offer(world: World) -> None:
    world.model.default(Script([Call("Bash", {"command": f"echo >> {WORKFLOW}", "description": "Write"}), Say("No.")]))
    world.github.commit(world.repo, "main", {WORKFLOW: "on: x\n"}, by="alice")
    async with world.bot():
        pull = pull_of(world, {WORKFLOW: "on: push\n"})
        world.github.commit(world.repo, "main", {WORKFLOW: "on: pull_request\n"}, by="alice")
        world.say("/claude resolve", on=pull)
        assert await world.outcome(on=pull) == "refused", live(world, pull)
    assert "still conflict markers in" in live(world, pull) and "approve" not in live(world, pull)


async def test_on_an_issue_it_means_the_pull_request_that_was_opened_for_it(world: World) -> None:
    world.model.default(write("calc.py", "a = 1"))
    async with world.bot():
        world.say("/claude resolve")
        await world.github.changed(lambda: bool(world.replies()), 20)
        assert "is for pull requests" in world.replies()[0].body
        world.say("/claude write it")
        assert await world.outcome() == "pull_request", world.replies()[-1].body
        base = world.github.commit(world.repo, "main", {"theirs.txt": "t\n"}, by="alice")
        world.say("/claude resolve")
        assert await world.outcome(2) == "pushed", world.replies()[-1].body
    assert parents(world, world.pulls()[0].head_sha)[1] == base


async def test_a_stop_saves_the_merge_as_far_as_it_is(world: World) -> None:
    world.model.default(Script([SOLVE, Wait("solved"), Say("unreachable")]))
    async with world.bot():
        pull = conflicting(world)
        tip, base = pull.head_sha, world.repo.branch_sha("main")
        world.say("/claude resolve", on=pull)
        await world.model.reached("solved", timeout=60)
        world.say("/claude stop", on=pull)
        assert await world.outcome(on=pull, timeout=20) == "stopped"
    [saved] = rescued(world).values()
    assert parents(world, saved) == [tip, base] and world.repo.file(saved, "calc.py") == b"a = 1 + 2\n"


async def test_what_was_saved_of_a_merge_is_not_pushed_with_marks_by_the_next_turn(world: World) -> None:
    world.model.default(Script([LOOK, Wait("looked"), Say("unreachable")]))
    async with world.bot():
        pull = conflicting(world)
        tip, base = pull.head_sha, world.repo.branch_sha("main")
        world.say("/claude resolve", on=pull)
        await world.model.reached("looked", timeout=60)
        world.say("/claude stop", on=pull)
        assert await world.outcome(on=pull, timeout=20) == "stopped"
        world.model.default(Script([SOLVE, Wait("half"), Say("unreachable")]))
        world.say("/claude resolve", on=pull)
        await world.model.reached("half", timeout=60)
        world.say("/claude stop", on=pull)
        assert await world.outcome(2, on=pull, timeout=20) == "stopped"
        world.model.default(Script([UNSOLVE, Say("Done.")]))
        world.say("/claude go on", on=pull)
        assert await world.outcome(3, on=pull) == "refused", live(world, pull)
        assert "still conflict markers in `calc.py`" in live(world, pull)
        world.model.default(Script([SOLVE, Say("Done.")]))
        world.say("/claude go on", on=pull)
        assert await world.outcome(4, on=pull) == "pushed", live(world, pull)
    assert pull.head_sha != tip and world.repo.file("feature", "calc.py") == b"a = 1 + 2\n"
    assert world.repo.file("feature", "theirs.txt") == b"t\n" and base is not None


@pytest.mark.acceptance("B07")
async def test_a_merge_whose_answer_was_lost_is_recognised_under_what_others_pushed_since(world: World) -> None:
    async with world.bot():
        pull = pull_of(world)
        tip, base = pull.head_sha, world.github.commit(world.repo, "main", {"theirs.txt": "t\n"}, by="alice")
        loses_the_push(world)
        world.say("/claude resolve", on=pull)
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
    [merge] = parents(world, pull.head_sha)
    assert parents(world, merge) == [tip, base] and world.repo.branches().keys() == {"main", "feature"}


async def test_one_that_ran_out_of_money_goes_on_as_a_merge_of_both(tmp_path: Path) -> None:
    async with World.running(tmp_path, FORGEHAND_SESSION_BUDGET="0.5") as world:
        dear = Call("Bash", LOOK.input, usage=TokenUsage(450_000, 100))
        world.model.default(Script([dear, Say("Never said.")]))
        async with world.bot():
            pull = conflicting(world)
            tip, base = pull.head_sha, world.repo.branch_sha("main")
            world.say("/claude resolve", on=pull)
            assert await world.outcome(on=pull) == "over_budget", live(world, pull)
            world.model.default(Script([SOLVE, Say("One and two are three.")]))
            world.say("/claude continue +3 --turns 30", on=pull)
            assert await world.outcome(2, on=pull) == "pushed", world.replies(pull)[-1].body
    head = world.repo.branch_sha("feature")
    assert head is not None and parents(world, head) == [tip, base]
    assert world.repo.file(head, "calc.py") == b"a = 1 + 2\n"
    assert "the files in conflict" in [one for one in world.model.requests if one.has_tools][-2].prompt
