"""The dashboard of a repository, over the wire: what it shows, whose ticks count, and how it comes and goes."""

from __future__ import annotations

import time
from typing import Literal

import pytest

from bot.models import InstallationId, Repo, RepoId, Thread
from bot.simulation.anthropic import Fail, Say, Script, Wait
from bot.simulation.github import Fault
from bot.simulation.github.state import Repository
from bot.simulation.github.threads import Issue
from bot.store import sessions
from bot.store.base import Store
from bot.store.records import NewTurn
from tests.world import CONFIG, World

ON = "dashboard: true\n"
PLAN = "1. Clamp the discount."
SECONDS = 45.0


def issues(world: World, repo: Repository | None = None) -> list[Issue]:
    found = (repo or world.repo).issues.values()
    return [one for one in found if one.author is world.app.bot and one.pull is None]


def text(world: World) -> str:
    return issues(world)[-1].body or "" if issues(world) else ""


async def shows(world: World, *words: str, without: str = "") -> Issue:
    def seen() -> Issue | None:
        body = text(world)
        return issues(world)[-1] if all(one in body for one in words) and (not without or without not in body) else None

    return await world.github.changed(seen, SECONDS)


async def opened(world: World) -> Issue:
    world.say("/claude dashboard")
    return await shows(world, "This issue shows what Forgehand does")


async def settled(world: World) -> None:
    """All deliveries are handled, and the dashboard has had the time of a look."""
    await world.github.idle()


@pytest.mark.quick("bot.dashboard", "bot.handlers", "bot.handlers.commands")
async def test_the_command_opens_one_issue_and_answers_with_it(world: World) -> None:
    async with world.bot():
        issue = await opened(world)
        await world.github.changed(lambda: any(f"#{issue.number}" in one.body for one in world.replies()), SECONDS)
        world.say("/claude dashboard")
        await world.github.changed(lambda: len(world.repo.issues) >= 2, SECONDS)
        await settled(world)
    assert len(issues(world)) == 1
    assert not issue.comments, "never a comment of its own"
    assert f"<!-- forgehand:dashboard={world.repo.id} -->" in text(world)


async def test_the_config_opens_it_at_the_next_turn_and_its_own_opening_starts_nothing(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: f"{ON}triggers:\n  issue_opened: true\n"})
    world.model.default(Script([Say("It subtracts.")]))
    async with world.bot():
        world.say("/claude ask what does it do?")
        assert await world.outcome() == "answered"
        await shows(world, "Nothing runs, nothing waits")
        await settled(world)
    assert not issues(world)[0].comments
    assert len(world.states()) == 1


async def test_a_running_turn_is_stopped_by_its_box(world: World) -> None:
    world.model.default(Script([Wait("never"), Say("unreachable")]))
    async with world.bot():
        await opened(world)
        world.say("/claude fix it")
        issue = await shows(world, "### 🛠️ Running", f"[#{world.issue.number}]", "**Stop**")
        world.github.tick_issue(issue, "Stop", by="alice")
        assert await world.outcome(timeout=SECONDS) == "stopped"
        await shows(world, "Nothing runs", without="[x]")
    assert "alice asked to stop" in world.replies()[-1].body


async def test_a_plan_is_approved_and_a_failed_turn_is_run_again_by_boxes(world: World) -> None:
    world.model.default(Script([Say(PLAN)]))
    async with world.bot():
        await opened(world)
        world.say("/claude plan mending it")
        issue = await shows(world, "### ✋ Waiting for a yes", "A plan waits", "until ")
        world.model.default(Script([Fail(400)]))
        world.github.tick_issue(issue, "Approve the plan", by="alice")
        assert await world.outcome(2) == "failed"
        await shows(world, "### ⚠️ Worth a look", "**Retry**", without="[x]")
        world.model.default(Script([Say("Nothing to do.")]))
        world.github.tick_issue(issue, "Retry", by="alice")
        assert await world.outcome(3) in ("no_change", "pull_request")
        await shows(world, "Nothing runs")


async def test_our_open_pull_request_stands_there_with_its_checks(world: World) -> None:
    async with world.bot():
        await opened(world)
        world.say("/claude fix it")
        assert await world.outcome() == "pull_request"
        pull = world.pulls()[0]
        await shows(
            world,
            "### 🔀 Open pull requests",
            f"[#{pull.number}](../pull/{pull.number})",
            "**Review** · `/claude review`",
        )
        assert "This repository has spent $" in text(world)


@pytest.mark.parametrize("who", ["mallory", "reader"])
async def test_a_stranger_who_ticks_boxes_changes_nothing_and_is_undone(world: World, who: str) -> None:
    world.model.default(Script([Say(PLAN)]))
    world.github.user("mallory")
    world.github.user("reader")
    world.repo.grant("reader", "triage")
    async with world.bot():
        await opened(world)
        world.say("/claude plan mending it")
        issue = await shows(world, "Approve the plan")
        before = issue.body
        world.github.tick_issue(issue, "Approve the plan", by=who)
        await world.github.changed(lambda: issue.body == before, SECONDS)
        forged = f"{before}\n- [x] **Stop** · `/claude stop`\n- [x] **All** · `/claude drop it`"
        world.github.edit(issue, by=who, body=forged)
        await world.github.changed(lambda: issue.body == before, SECONDS)
        await settled(world)
    assert len(world.states()) == 1 and not issue.comments


async def test_boxes_that_a_person_wrote_are_no_commands(world: World) -> None:
    world.model.default(Script([Wait("never"), Say("unreachable")]))
    async with world.bot():
        await opened(world)
        world.say("/claude fix it")
        issue = await shows(world, "**Stop**")
        before = issue.body or ""
        world.github.edit(issue, by="alice", body=f"{before}\n- [x] **Stop** · `/claude stop`")
        await world.github.changed(lambda: issue.body == before, SECONDS)
        await settled(world)
        assert world.states()[0]["state"] == "running", "the line lacks the turn's name"
        world.say("/claude stop")
        assert await world.outcome(timeout=SECONDS) == "stopped"


async def test_a_forged_marker_in_a_strangers_issue_is_not_ours(world: World) -> None:
    world.github.user("mallory")
    forged = f"<!-- forgehand:dashboard={world.repo.id} -->\n- [ ] **Retry #1** · `/claude retry`"
    other = world.github.open_issue(world.repo, title="Forgehand dashboard", body=forged, by="mallory")
    async with world.bot():
        await opened(world)
        world.github.tick_issue(other, "Retry", by="alice")
        await settled(world)
    assert other.body is not None and "[x]" in other.body, "it is left alone"
    assert len(issues(world)) == 1 and issues(world)[0] is not other


async def test_two_ticks_in_one_edit_act_on_their_threads(world: World) -> None:
    world.model.default(Script([Wait("never"), Say("unreachable")]))
    second = world.github.open_issue(world.repo, title="Another", body="x", by="alice")
    async with world.bot():
        await opened(world)
        world.say("/claude fix it")
        world.say("/claude fix it", on=second)
        issue = await shows(world, f"[#{world.issue.number}]", f"[#{second.number}]", "### 🛠️ Running")
        world.github.edit(issue, by="alice", body=(issue.body or "").replace("- [ ] **Stop", "- [x] **Stop"))
        assert await world.outcome(timeout=SECONDS) == "stopped"
        assert await world.outcome(on=second, timeout=SECONDS) == "stopped"


async def test_closing_switches_it_off_and_reopening_on(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: ON})
    world.model.default(Script([Say("It subtracts.")]))
    async with world.bot():
        issue = await opened(world)
        world.github.close(issue, by="alice")
        await shows(world, "This dashboard is switched off", "`dashboard: true`")
        edits = len(issue.history)
        world.say("/claude ask what does it do?")
        assert await world.outcome() == "answered"
        await settled(world)
        assert len(issue.history) == edits, "the config alone does not switch it on again"
        world.github.reopen(issue, by="alice")
        await shows(world, "This issue shows what Forgehand does")
        world.github.close(issue, by="alice")
        await shows(world, "This dashboard is switched off")
        world.say("/claude dashboard")
        await shows(world, "This issue shows what Forgehand does")
    assert issue.state == "open" and len(issues(world)) == 1


async def test_a_deleted_one_is_opened_again_once_if_the_config_says_so(world: World) -> None:
    world.github.commit(world.repo, "main", {CONFIG: ON})
    async with world.bot():
        first = await opened(world)
        world.github.delete_issue(first, by="alice")
        await world.github.changed(lambda: [one for one in issues(world) if one is not first], SECONDS)
        second = issues(world)[0]
        await shows(world, "This issue shows")
        world.github.delete_issue(second, by="alice")
        await settled(world)
        assert not issues(world)
        world.say("/claude dashboard")
        await shows(world, "This issue shows")


async def test_a_transferred_one_is_left_alone(world: World) -> None:
    other = world.github.create_repo("octo/elsewhere", files={"a.txt": "a"}, private=True)
    async with world.bot():
        issue = await opened(world)
        moved = world.github.transfer(issue, other, by="alice")
        world.say("/claude ask what?")
        await world.outcome()
        await settled(world)
    assert len(moved.history) <= 1 and not issues(world)


@pytest.mark.parametrize("kind", ["fail", "lose"])
async def test_a_lost_answer_makes_no_second_one(world: World, kind: Literal["fail", "lose"]) -> None:
    world.github.faults.add(Fault("POST /repos/*/issues", kind, status=502))
    async with world.bot():
        await opened(world)
        await settled(world)
    assert len(issues(world)) == 1


async def test_it_is_found_again_after_a_crash_between_the_making_and_the_note(world: World) -> None:
    async with world.bot():
        issue = await opened(world)
    store = await Store.open(world.database)
    await store.run("UPDATE dashboards SET number = NULL, body_sha256 = NULL")
    await store.close()
    world.model.default(Script([Wait("never"), Say("unreachable")]))
    async with world.bot():
        world.say("/claude fix it")
        await shows(world, f"[#{world.issue.number}]", "**Stop**")
    assert issues(world) == [issue]


async def test_nothing_changes_and_nothing_is_edited(world: World) -> None:
    async with world.bot():
        issue = await opened(world)
        edits = len(issue.history)
    async with world.bot():
        world.say("/claude status")
        await world.github.changed(lambda: any("Nothing is running" in one.body for one in world.replies()), SECONDS)
        await settled(world)
    assert len(issue.history) == edits


async def test_a_thousand_queued_turns_are_ten_rows_and_a_number(world: World) -> None:
    async with world.bot():
        await opened(world)
    store = await Store.open(world.database)
    place = Repo(RepoId(world.repo.id), world.repo.owner.login, world.repo.name, True, "main")
    for n in range(1_000):
        thread = Thread(place, InstallationId(world.installation.id), 10_000 + n, False)
        new = NewTurn(thread, "run", "fix", "alice", 5, f"comment:1:{n}", "claude-sonnet-5-5", 0.0, 60.0)
        await sessions.begin_turn(store, new)
    await store.run("INSERT INTO switches (name, set_by, set_at) VALUES ('paused', 'operator', :at)", at=time.time())
    await store.run("UPDATE dashboards SET body_sha256 = NULL, edited_at = 0")
    await store.close()
    async with world.bot():
        issue = await shows(world, "### ⏳ Queued", "… and 990 more.")
    assert (issue.body or "").count("**Stop**") == 10 and len(issue.body or "") < 8_000


async def test_a_repository_without_issues_gets_a_sentence(world: World) -> None:
    async with world.bot():
        world.repo.has_issues = False
        world.say("/claude dashboard")
        await world.github.changed(lambda: any("I could not open an issue" in one.body for one in world.replies()), 20)
    assert not issues(world)
