"""The check run of a turn at its commit: its states, its conclusion with the findings, and its buttons."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from bot.github.client import GitHubApp
from bot.live.check_runs import CheckBoard
from bot.models import InstallationId, Repo, RepoId, Thread
from bot.outbound import Outbound, Redactor
from bot.settings import GitHubSettings, Secret
from bot.simulation.anthropic import Script, Wait
from bot.simulation.github import SimulatedGitHub
from bot.simulation.github.accounts import App
from bot.simulation.github.faults import Fault
from bot.simulation.github.state import CheckRun, Repository
from bot.store import ci as rows
from bot.store import sessions
from bot.store.base import Store
from bot.store.records import NewTurn
from tests.reviews.test_reviews import CODE, SPAN, ZERO, ours, prompts, pull_of, verdict
from tests.world import World
from tests.world.ci import wait_for_webhooks
from tests.world.pulls import write

MANY = [{**SPAN, "line": 6, "start_line": 6, "body": f"Finding number {n} of many words {n}."} for n in range(70)]


def checks(world: World) -> list[CheckRun]:
    return list(world.repo.checks.values())


async def concluded(world: World, n: int = 1) -> CheckRun:
    def found() -> CheckRun | None:
        done = [one for one in checks(world) if one.conclusion not in (None, "skipped")]
        return done[n - 1] if len(done) >= n else None

    check = await world.github.changed(found, 60)
    assert check is not None
    return check


async def test_a_review_is_shown_at_its_commit_with_its_findings(world: World) -> None:
    world.model.default(Script([Wait("go"), verdict(ZERO, SPAN)]))
    async with world.bot():
        pull = pull_of(world)
        world.say("/claude review", on=pull)
        await world.model.reached("go", 40)
        await world.github.changed(lambda: checks(world) and checks(world)[0].status == "in_progress", 20)
        assert [one["identifier"] for one in checks(world)[0].actions] == ["stop"]
        world.model.release("go")
        check = await concluded(world)
        await world.github.changed(lambda: check.output["annotations"], 20)
    assert [check] == checks(world) and check.head_sha == pull.head_sha and check.name == "Forgehand"
    assert check.conclusion == "neutral", "changes were asked for"
    zero, span = check.output["annotations"]
    assert (zero["path"], zero["start_line"], zero["end_line"]) == ("calc.py", 2, 2)
    assert zero["annotation_level"] == "warning" and "divides by zero" in zero["message"]
    assert (span["start_line"], span["end_line"], span["annotation_level"]) == (5, 6, "notice")
    assert [one["identifier"] for one in check.actions] == ["retry"]
    assert check.history[0][0] in ("queued", "in_progress") and "the review" in check.output["summary"]


async def test_the_check_of_a_push_sums_up_and_leads_to_the_live_comment_wherever_it_is(world: World) -> None:
    world.model.default(write("new.txt", "one"))
    async with world.bot():
        world.say("/claude write it")
        assert await world.outcome() == "pull_request", world.replies()[0].body
        check = await concluded(world)
        await world.github.changed(lambda: "The agent says" in check.output["summary"], 20)
    issue = f"{world.github.url}/{world.repo.full_name}/issues/{world.issue.number}"
    address = f"{issue}#issuecomment-{world.replies()[0].id}"
    assert check.details_url == address and f"[The live comment]({address}) has all of it." in check.output["summary"]
    assert "> Wrote new.txt." in check.output["summary"] and "is happening" not in check.output["summary"]


async def test_many_findings_come_in_portions_and_each_once_though_an_answer_is_lost(world: World) -> None:
    world.model.default(Script([verdict(*MANY)]))
    async with world.bot():
        pull = pull_of(world)
        world.github.faults.add(Fault(match="POST /repos/*/check-runs", kind="lose"))
        world.github.faults.add(Fault(match="PATCH /repos/*/check-runs/*", kind="lose", times=2))
        world.say("/claude review", on=pull)
        check = await concluded(world)
        await world.github.changed(lambda: len(check.output["annotations"]) >= 70, 60)
        assert await world.outcome(on=pull) == "reviewed"
    assert [check] == checks(world)
    words = [one["message"] for one in check.output["annotations"]]
    assert len(words) == len(set(words)) == 70
    [review] = ours(world, pull)
    assert len(review.comments) == 60 and "Finding number 69" in review.body


async def test_stop_and_retry_are_buttons_for_people_who_may_write(world: World) -> None:
    world.github.user("eve")
    world.repo.grant("eve", "read")
    world.model.default(Script([Wait("go"), verdict(ZERO)]))
    async with world.bot():
        pull = pull_of(world)
        world.github.edit(pull, by="alice", body="It halves what it is given.")
        world.say("/claude review", on=pull)
        await world.model.reached("go", 40)
        await world.github.changed(lambda: checks(world) and checks(world)[0].status == "in_progress", 20)
        world.github.press(checks(world)[0], "stop", by="eve")
        await world.github.idle()
        world.github.press(checks(world)[0], "stop", by="alice")
        assert await world.outcome(on=pull) == "stopped"
        assert "alice asked to stop" in world.replies(pull)[0].body
        check = await concluded(world)
        assert check.conclusion == "cancelled"
        world.model.release("go")
        world.github.press(check, "retry", by="eve")
        world.github.rerequest(check, by="alice")
        assert await world.outcome(2, on=pull) == "reviewed", world.replies(pull)[-1].body
        await concluded(world, 2)
        await world.replay("check_run", "rerequested")
        await wait_for_webhooks(world, "this check run was run again before")
    assert len(world.states(pull)) == 2, "eve has started nothing, nor has a replay"
    asked = prompts(world)[-1].prompt
    assert "It halves what it is given." in asked and "it was changed after the command" not in asked


@pytest.mark.acceptance("B07")
async def test_a_review_that_waits_goes_on_to_the_newest_commit(world: World) -> None:
    world.model.default(Script([Wait("go"), verdict(ZERO), verdict(ZERO), verdict(ZERO)]))
    async with world.bot():
        pull = pull_of(world)
        world.say("/claude review", on=pull)
        await world.model.reached("go", 40)
        for n in range(3):
            world.github.commit(world.repo, "feature", {"calc.py": f"{CODE}\n# {n}\n"}, by="alice")
        await world.github.changed(lambda: len(checks(world)) == 2, 20)
        world.model.release("go")
        assert await world.outcome(2, on=pull) == "reviewed", world.replies(pull)[-1].body
        await world.github.changed(lambda: all(one.conclusion for one in checks(world)), 60)
    found = {one.head_sha: one.conclusion for one in checks(world)}
    assert found[pull.head_sha] == "neutral" and sorted(map(str, found.values()))[-1] == "skipped"


async def test_work_that_was_pushed_is_shown_at_its_commit(world: World) -> None:
    async with world.bot():
        world.say("/claude fix this")
        assert await world.outcome() == "pull_request"
        check = await concluded(world)
    assert check.conclusion == "success" and check.head_sha == world.pulls()[0].head_sha


async def waiting(github: SimulatedGitHub, store: Store, app: App, name: str) -> Repository:
    """A turn in a repository with an installation of its own, whose check run is to be made."""
    repo = github.create_repo(name, files={"a.py": "x = 1\n"})
    installed = github.install(app, repos=[repo])
    issue = github.open_issue(repo, title="Broken", by=repo.owner)
    where = Repo(RepoId(repo.id), repo.owner.login, repo.name, True, "main")
    thread = Thread(where, InstallationId(installed.id), issue.number, is_pull=False)
    source = f"issue:{name}"
    new = NewTurn(thread, "run", "fix it", "alice", 11, source, "claude-sonnet-5-5", 5.0, 3600.0)
    key = await sessions.begin_turn(store, new)
    assert key is not None
    await rows.show_turn(store, key, repo.branches()["main"])
    return repo


async def test_an_installation_whose_github_is_slow_holds_up_no_other(tmp_path: Path) -> None:
    async with SimulatedGitHub.running(tmp_path / "github") as github, contextlib.AsyncExitStack() as stack:
        app, store = github.create_app(), await Store.open(tmp_path / "state.db")
        stack.push_async_callback(store.close)
        slow = await waiting(github, store, app, "octo/calc")
        other = await waiting(github, store, app, "acme/shop")
        held = github.faults.add(Fault("POST /repos/octo/calc/check-runs", "hold"))
        client = GitHubApp(GitHubSettings(github.url, github.api_url, app.id, Secret(app.private_key_pem), (), ()))
        stack.push_async_callback(client.close)
        board = asyncio.create_task(CheckBoard(store, Outbound(client, Redactor())).loop.run())
        await asyncio.wait_for(held.reached.wait(), 10)
        await github.changed(lambda: bool(other.checks), 4)
        assert not slow.checks, "it waits still"
        board.cancel()
        await asyncio.wait({board}, timeout=10)
        assert board.cancelled(), "whoever waits for GitHub is ended with it"
        held.release.set()
