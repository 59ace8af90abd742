"""Pulls, publishing: a push with workflow files is held whole, and goes as exactly that commit or not at all."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from bot.simulation.github.gitstore import git
from bot.simulation.github.state import Protection
from tests.world import World
from tests.world.pulls import CONFIG, WORKFLOW, WRITE, begun, cut_off_after_the_push, does, live, permit, pull_of, write


async def held(world: World) -> str:
    """The name under which the commit waits."""
    world.model.default(does(WRITE, "Add a workflow"))
    world.say("/claude add a workflow")
    assert await world.outcome() == "refused", world.replies()[0].body
    return f"{world.states()[0]['session']}-1-1"


@pytest.mark.acceptance("E05")
async def test_pulls_a_held_commit_is_shown_and_goes_as_it_is_after_a_yes(world: World) -> None:
    permit(world)
    world.repo.grant("bob", "write")
    async with world.bot():
        name = await held(world)
        live = world.replies()[0].body
        assert "+on: push" in live and f"/claude approve {name}" in live, live
        assert "```diff\n" in live and "(Shortened" not in live
        assert world.repo.branches().keys() == {"main"}
        requests = len(world.model.requests)
    async with world.bot():  # the yes is bound to what is stored, not to a process
        world.say("/claude approve", by="bob")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
    assert len(world.model.requests) == requests, "no model is asked"
    [pull] = world.pulls()
    assert world.repo.file(pull.head, WORKFLOW) == b"on: push\n" and world.repo.file(pull.head, "other.txt") == b"x\n"
    assert pull.head_sha[:12] in live, "what was shown is what was pushed"
    assert pull.title == "Add a workflow" and "Asked by `alice`" in str(pull.body)
    assert "`bob` approved exactly this commit" in str(pull.body)
    assert "Answered:** `bob` said yes" in world.replies()[0].body


async def test_pulls_what_was_verified_of_a_held_commit_is_told_when_it_goes(world: World) -> None:
    permit(world)
    world.github.commit(world.repo, "main", {CONFIG: "checks: ['test -e other.txt']\n"})
    async with world.bot():
        await held(world)
        world.say("/claude approve")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
    [pull] = world.pulls()
    for body in (world.replies()[-1].body, str(pull.body)):
        assert f"on a clean checkout of {pull.head_sha[:12]} in a fresh sandbox" in body, body
        assert "✓ `test -e other.txt`" in body and "Not verified" not in body


async def test_pulls_a_long_workflow_is_said_to_be_shown_in_part(world: World) -> None:
    permit(world)
    lines = f"mkdir -p .github/workflows && seq -f '# line %g' 2000 > {WORKFLOW}"
    world.model.default(does(lines, "Add a workflow"))
    async with world.bot():
        world.say("/claude add a workflow")
        assert await world.outcome() == "refused"
    assert "+# line 9" in world.replies()[0].body and "(Shortened: look at the rest" in world.replies()[0].body


@pytest.mark.acceptance("E05")
async def test_pulls_without_the_permission_the_remedy_is_told_and_a_later_yes_pushes_the_same(world: World) -> None:
    async with world.bot():
        name = await held(world)
        offered = world.replies()[0].body
        assert "Workflows: Read and write" in offered and "GitHub would refuse this push today" in offered
        assert "Push exactly" not in offered and f"`/claude approve {name}`" in offered, (
            "nothing that must fail to tick"
        )
        world.say("/claude approve")
        assert await world.outcome(2) == "refused"
        told = world.replies()[-1].body
        assert "Workflows: Read and write" in told and not world.pulls()
        permit(world)
        world.say("/claude approve")
        assert await world.outcome(3) == "pull_request", world.replies()[-1].body
    [pull] = world.pulls()
    assert pull.head_sha[:12] in world.replies()[0].body and pull.title == "Add a workflow"


async def test_pulls_a_no_leaves_it_and_a_tick_is_a_yes(world: World) -> None:
    permit(world)
    async with world.bot():
        name = await held(world)
        live = world.replies()[0]
        box = f"- [ ] **Push exactly this commit** · `/claude approve {name}`"
        assert box in live.body, live.body
        world.github.edit_comment(live, live.body.replace(box, box.replace("[ ]", "[x]")), by="alice")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body


async def test_pulls_a_held_commit_that_was_turned_down_stays_here(world: World) -> None:
    permit(world)
    async with world.bot():
        name = await held(world)
        world.say("/claude deny")
        await world.github.changed(lambda: "said no" in world.replies()[0].body, 20)
        world.say(f"/claude approve {name}")
        await world.github.changed(lambda: "already has an answer" in world.replies()[-1].body, 20)
    assert world.repo.branches().keys() == {"main"}


@pytest.mark.parametrize("role", ["read", "none"])
async def test_pulls_who_may_not_write_lets_nothing_go(world: World, role: str) -> None:
    permit(world)
    world.github.user("eve")
    world.repo.grant("eve", role)
    async with world.bot():
        await held(world)
        world.say("/claude approve", by="eve")
        await world.github.changed(lambda: len(world.replies()) > 1, 20)
    assert world.repo.branches().keys() == {"main"} and len(world.states()) == 1


async def test_pulls_a_held_commit_is_judged_again_by_the_rules_of_now(world: World) -> None:
    permit(world)
    async with world.bot():
        await held(world)
        world.github.commit(world.repo, "main", {CONFIG: "push: {blocked: [other.txt]}\n"}, by="alice")
        world.say("/claude approve")
        assert await world.outcome(2) == "refused"
    assert "`other.txt`" in world.replies()[-1].body and not world.pulls()


async def test_pulls_a_held_commit_no_longer_fits_once_the_branch_has_moved(world: World) -> None:
    permit(world)
    async with world.bot():
        world.model.default(does("echo a > a.txt"))
        world.say("/claude begin")
        assert await world.outcome() == "pull_request"
        [pull] = world.pulls()
        world.model.default(does(WRITE))
        world.say("/claude add a workflow")
        assert await world.outcome(2) == "refused"
        moved = world.github.commit(world.repo, pull.head, {"theirs.txt": "x"}, by="alice")
        world.say("/claude approve")
        assert await world.outcome(3) == "refused", world.replies()[-1].body
    assert "Somebody else moved the branch" in world.replies()[-1].body
    assert world.repo.branch_sha(pull.head) == moved


async def test_pulls_a_held_commit_whose_time_is_over_does_not_go(world: World) -> None:
    permit(world)
    async with world.bot():
        name = await held(world)
    async with world.bot(lambda: time.time() + 8 * 24 * 3600):
        await world.github.changed(lambda: any("so it has expired" in one.body for one in world.replies()), 20)
    async with world.bot(FORGEHAND_DAY_BUDGET="0.01"):  # which nobody is told of who could not use the money
        world.say(f"/claude approve {name}")
        await world.github.changed(lambda: "can no longer be answered" in world.replies()[-1].body, 20)
    assert world.repo.branches().keys() == {"main"}


async def test_pulls_a_secret_beside_a_workflow_is_not_on_offer(world: World) -> None:
    secret = "ghp_" + "A1b2C3d4E5" * 4
    world.model.default(does(f"{WRITE} && echo {secret} > key.txt"))
    async with world.bot():
        world.say("/claude add a workflow")
        assert await world.outcome() == "refused"
    assert "looks like a secret" in world.replies()[0].body and "approve" not in world.replies()[0].body


@pytest.mark.acceptance("E05")
async def test_pulls_workflow_files_that_only_the_remote_finds_wait_for_a_yes_as_well(world: World) -> None:
    """As where the branch lags behind a base whose workflows have changed."""
    words = "refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml`"
    rule = Protection("forgehand/*", "", (), f"{words} without `workflows` permission")
    world.repo.protections.append(rule)
    permit(world)
    world.model.default(does("echo x > a.txt"))
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "refused"
        live = world.replies()[0].body
        assert words in live and "Workflows: Read and write" in live and "Push exactly this commit" in live, live
        world.repo.protections.clear()
        world.say("/claude approve")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
    assert world.pulls()[0].head_sha[:12] in live


@pytest.mark.acceptance("E05")
async def test_pulls_taking_workflow_files_back_waits_for_a_yes_too(world: World) -> None:
    permit(world)
    async with world.bot():
        await held(world)
        world.say("/claude approve")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
        [pull] = world.pulls()
        world.say("/claude undo")
        assert await world.outcome(3) == "refused"
        assert world.repo.file(pull.head, WORKFLOW) is not None
        world.say("/claude approve")
        assert await world.outcome(4) == "pushed", world.replies()[-1].body
        assert world.repo.file(pull.head, WORKFLOW) is None
        world.say("/claude undo")
        # What was taken back is not taken back again.
        await world.github.changed(lambda: "no push of this conversation left" in world.replies()[-1].body, 20)


async def test_pulls_what_is_held_for_a_closed_pull_request_does_not_go(world: World) -> None:
    permit(world)
    async with world.bot():
        world.model.default(does("echo a > a.txt"))
        world.say("/claude begin")
        assert await world.outcome() == "pull_request"
        [pull] = world.pulls()
        stands = world.repo.branch_sha(pull.head)
        world.model.default(does(f"{WRITE} && printf 'a: b # \\xe2\\x80\\xae\\n' >> {WORKFLOW}"))
        world.say("/claude add a workflow")
        assert await world.outcome(2) == "refused"
        assert "\\u{202e}" in world.replies()[-1].body, "what turns letters around is shown for what it is"
        world.github.close(pull, by="alice")
        world.say("/claude approve")
        assert await world.outcome(3) == "refused"
    assert "no longer fits" in world.replies()[-1].body and world.repo.branch_sha(pull.head) == stands


async def test_pulls_a_held_commit_goes_by_its_own_name_too(world: World) -> None:
    permit(world)
    async with world.bot():
        await held(world)
        known = (world.repo.branch_sha("main") or "")[:12]
        [sha] = set(re.findall(r"`([0-9a-f]{12})`", world.replies()[0].body)) - {known}
        world.say(f"/claude approve {sha}")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
    assert world.pulls()[0].head_sha.startswith(sha)


@pytest.mark.acceptance("E05")
async def test_pulls_what_was_saved_is_judged_again_by_the_rules_of_now_and_goes_once_nothing_is_against_it(
    world: World,
) -> None:
    async with world.bot():
        pull = await begun(world)
        world.say("/claude stop", on=pull)
        assert await world.outcome(on=pull) == "stopped", live(world, pull)
        world.github.commit(world.repo, "main", {CONFIG: "push: {blocked: [new.txt]}\n"}, by="alice")
        stands = pull.head_sha
        world.model.default(write("more.txt", "two"))
        world.say("/claude go on", on=pull)
        assert await world.outcome(2, on=pull) == "refused", live(world, pull)
        assert "`new.txt`: the repository's configuration blocks" in live(world, pull) and pull.head_sha == stands
        world.model.default(does("rm new.txt && echo 2 > more.txt"))
        world.say("/claude leave that file alone", on=pull)
        assert await world.outcome(3, on=pull) == "pushed", live(world, pull)
    assert world.repo.file("feature", "more.txt") == b"2\n" and world.repo.file("feature", "new.txt") is None


@pytest.mark.review("suspected-4")
@pytest.mark.parametrize("how", ["protected", "the default branch"])
async def test_pulls_a_branch_that_is_guarded_since_gets_no_held_commit(world: World, how: str) -> None:
    """GitHub itself would take it where the App may pass its rules: asked again right before the push."""
    permit(world)
    pull = pull_of(world)
    stands = pull.head_sha
    async with world.bot():
        world.model.default(does(WRITE, "Add a workflow"))
        world.say("/claude add a workflow", on=pull)
        assert await world.outcome(on=pull) == "refused", live(world, pull)
        guard(world, how)
        world.say("/claude approve", on=pull)
        assert await world.outcome(2, on=pull) == "refused", live(world, pull)
    told = live(world, pull)
    assert f"is {how}, and Forgehand never pushes to it" in told and pull.head_sha == stands, told
    kept = Path(world.environment["FORGEHAND_DATA_DIR"], "kept")
    assert list(kept.glob("*-2.bundle")), "workflow files go to no ref: the work is kept on the host"


@pytest.mark.review("suspected-4")
@pytest.mark.parametrize("how", ["protected", "the default branch"])
async def test_pulls_a_branch_that_is_guarded_while_the_agent_works_gets_no_push(world: World, how: str) -> None:
    async with world.bot():
        pull = await begun(world)
        stands = pull.head_sha
        guard(world, how)
        world.model.release("work")
        assert await world.outcome(on=pull) == "refused", live(world, pull)
    assert f"is {how}, and Forgehand never pushes to it" in live(world, pull) and pull.head_sha == stands
    assert saved(world), "the work is kept"


@pytest.mark.review("suspected-4")
async def test_pulls_what_arrived_before_the_branch_was_protected_is_told_as_pushed(world: World) -> None:
    async with world.bot():
        pull = await begun(world)
        stands = pull.head_sha
        cut_off_after_the_push(world, lambda: guard(world, "protected"))
        world.model.release("work")
        assert await world.outcome(on=pull) == "pushed", live(world, pull)
    assert pull.head_sha != stands


def guard(world: World, how: str) -> None:
    """By a rule that lets this push through: it forbids merges, and this is none."""
    if how == "protected":
        world.repo.protections.append(Protection("feature", only="linear"))
    else:
        world.repo.default_branch = "feature"


def saved(world: World) -> str | None:
    """What stands at a ref of ours that is no branch."""
    found = git(world.repo.path, "for-each-ref", "--format=%(objectname)", "refs/forgehand/rescue").decode().split()
    return found[0] if found else None
