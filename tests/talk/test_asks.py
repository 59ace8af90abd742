"""May it do this? A call that the repository wants asked about waits for people, and for no longer than ten minutes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.handlers.answers import LATE
from bot.models import InstallationId, Repo, RepoId, Thread, TurnKey
from bot.sessions import dialogue
from bot.sessions.services import Services
from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.simulation.github.gitstore import refs
from bot.simulation.github.threads import Comment
from bot.store import approvals, audit, sessions
from bot.store.approvals import ApprovalAnswer, ApprovalKind, ApprovalRequest, ApprovalState, Scope
from bot.store.base import Store
from bot.store.records import NewTurn
from sandbox.agents.events import PermissionAsked
from tests.crash.process import Service
from tests.world import World, ways_out

ASK = {".github/forgehand.yml": "permission: ask\n"}
RUN = Call("Bash", {"command": "touch built.txt", "description": "Build it"})
REACH = ways_out.asking("files.example.invalid", "github.com")


@pytest.fixture(autouse=True)
def _asking(world: World) -> None:
    world.github.commit(world.repo, "main", ASK, by="alice")


async def asked(world: World, count: int = 1) -> str:
    """The id of the latest question in the thread."""

    def ids() -> list[str]:
        found = [one.body for one in world.replies() if one.body.startswith("<!-- forgehand:ask=")]
        return [body.split("forgehand:ask=")[1].split(" ")[0] for body in found]

    await world.github.changed(lambda: len(ids()) >= count, 30)
    return ids()[count - 1]


def shows(world: World, words: str) -> Comment | None:
    return next((one for one in world.replies() if words in one.body), None)


def a_turn(source: str, approval: str | None = None) -> NewTurn:
    thread = Thread(Repo(RepoId(1), "octo-org", "shop", True, "main"), InstallationId(1), 7, is_pull=False)
    return NewTurn(thread, "run", "build", "alice", 11, source, "claude-sonnet-5-5", 5.0, 3600.0, approval=approval)


def results(world: World) -> str:
    return str([one.tool_results for one in world.model.requests if one.has_tools][-1])


async def test_a_yes_lets_the_waiting_agent_go_on_and_is_in_the_audit_trail(world: World) -> None:
    world.model.default(Script([RUN, Say("Built.")]))
    async with world.bot():
        world.say("/claude build")
        question = await asked(world)
        body = world.replies()[1].body
        assert "touch built.txt" in body and f"/claude approve {question}" in body and "Build it" in body
        await world.github.changed(lambda: question in world.replies()[0].body, 20)
        world.say(f"/claude approve {question}")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    assert world.repo.file(world.pulls()[0].head, "built.txt") == b""
    store = await Store.open_reader(world.database)
    entries = [(one.actor, one.action, one.subject) for one in await audit.listing(store)]
    await store.close()
    assert entries == [("alice", "approved", question)]


async def test_the_live_comment_says_at_once_that_it_waits_also_where_news_has_to_wait(world: World) -> None:
    """It would say for minutes that the call runs which it asks for."""
    world.model.default(Script([Wait("ask"), RUN, Wait("never"), Say("unreachable")]))
    async with world.bot():
        world.say("/claude build")
        await world.model.reached("ask", timeout=60)
        assert await world.change("UPDATE writer_buckets SET tokens = 12, refilled_at = :at", at=time.time()) == 1
        world.model.release("ask")
        await world.github.changed(lambda: shows(world, "### ❓ Waiting for your answer"), 20)


async def test_a_no_is_told_to_the_agent_which_goes_on_without(world: World) -> None:
    world.model.default(Script([RUN, Say("Not built.")]))
    async with world.bot():
        world.say("/claude build")
        world.say(f"/claude deny {await asked(world)}")
        assert await world.outcome() == "no_change", world.replies()[0].body
    assert "alice said no" in results(world)


async def test_words_below_a_no_reach_the_agent_that_waits(world: World) -> None:
    world.model.default(Script([RUN, Wait("on"), RUN, Say("Not built.")]))
    async with world.bot():
        world.say("/claude build")
        said = world.say(f"/claude deny {await asked(world)}\n\nUse <!-- evil --> make instead.")
        await world.model.reached("on", timeout=60)
        await world.github.changed(lambda: "rocket" in [one.content for one in said.reactions], 20)
        world.model.release("on")
        world.say(f"/claude deny {await asked(world, 2)}")
        assert await world.outcome() == "no_change", world.replies()[0].body
    heard = str([one for one in world.model.requests if one.has_tools][-1].body["messages"])
    assert "make instead." in heard and "alice said no" in heard and "evil" not in heard
    assert len(world.states()) == 1


def test_nothing_unseen_is_said_yes_to() -> None:
    """Fillers and selectors are letters by category: a program of that name would be run unseen."""
    for letter in ("\u3164", "\u2800", "\u115f", "\ufe0f", "\U000e0101", "\u034f", "\u200b", "\u202e"):
        asked = PermissionAsked("r", "Bash", "Bash", {"command": f"./{letter} clean"})
        assert f"\\u{{{ord(letter):x}}}" in dialogue.matter(asked)["shown"], hex(ord(letter))
    assert (
        "schön 漢字 ✓ é"
        in dialogue.matter(PermissionAsked("r", "Bash", "Bash", {"command": "echo schön 漢字 ✓ é"}))["shown"]
    )


async def test_a_yes_for_the_session_is_not_asked_for_again_and_covers_nothing_else(world: World) -> None:
    other = Call("Bash", {"command": "touch other.txt", "description": "Build it"})
    world.model.default(Script([RUN, RUN, other, Say("Built.")]))
    async with world.bot():
        world.say("/claude build")
        world.say(f"/claude approve {await asked(world)} session")
        second = await asked(world, 2)
        assert "touch other.txt" in world.replies()[2].body
        world.say("/claude deny")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    assert second.endswith("-3"), "the repeated call was answered without a question"
    assert world.repo.file(world.pulls()[0].head, "other.txt") is None


def question_comment(world: World) -> Comment | None:
    return next((one for one in world.replies() if one.body.startswith("<!-- forgehand:ask=")), None)


async def test_the_comment_with_the_question_has_the_boxes_and_then_the_answer(world: World) -> None:
    """That is the one of which people are notified; nobody has to look for another to say yes, or to see who did."""
    world.model.default(Script([RUN, Wait("on"), Say("Built.")]))
    async with world.bot():
        world.say("/claude build")
        await asked(world)
        comment = await world.github.changed(lambda: question_comment(world), 20)
        assert comment.body.count("- [ ]") == 3
        world.github.user("eve")
        world.repo.grant("eve", "read")
        world.github.tick(comment, "Yes, this once", by="eve")
        await world.github.changed(lambda: "- [x]" not in comment.body, 20)
        assert "May the agent do this?" in comment.body, "it is no answer of hers"
        world.github.tick(comment, "Yes, for this session", by="alice")
        await world.model.reached("on", timeout=60)
        await world.github.changed(lambda: "`alice` said yes, for this session" in comment.body, 20)
        assert "- [" not in comment.body and "May the" not in comment.body and "touch built.txt" in comment.body
        world.github.edit_comment(comment, comment.body.replace("yes", "no"), by="alice")
        await world.github.changed(lambda: "`alice` said yes" in comment.body, 20)
        world.model.release("on")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    assert len(world.states()) == 1
    await world.change("UPDATE questions SET shows = 'open'")  # as if killed before it was written
    world.github.edit_comment(comment, "May the agent do this?")
    async with world.bot():
        await world.github.changed(lambda: "`alice` said yes" in comment.body, 20)


async def test_only_people_with_write_access_answer(world: World) -> None:
    world.github.user("eve")
    world.repo.grant("eve", "read")
    world.model.default(Script([RUN, Say("Built.")]))
    async with world.bot():
        world.say("/claude build")
        question = await asked(world)
        world.say(f"/claude approve {question}", by="eve")
        await world.github.changed(lambda: "only take commands" in world.replies()[-1].body, 20)
        world.say(f"/claude deny {question}")
        assert await world.outcome() == "no_change"


async def test_nobody_answers_and_a_later_yes_goes_on(world: World) -> None:
    edit = Call("Write", {"file_path": "half.txt", "content": "half\n"})
    world.model.default(Script([edit, RUN, Say("unreachable")]))
    ahead = 0.0
    async with world.bot(lambda: time.time() + ahead):
        world.say("/claude build")
        question = await asked(world)
        ahead = 700.0
        assert await world.outcome() == "needs_input", world.replies()[0].body
        live = world.replies()[0]
        assert "nobody answered in time" in live.body and question in live.body
        comment = await world.github.changed(lambda: shows(world, "**No longer open:** nobody answered"), 20)
        assert "- [" not in comment.body
        assert refs(world.repo.path, "refs/forgehand/"), "what was done is kept"
        world.model.default(Script([RUN, Say("Built.")]))
        world.github.tick(live, "Yes, and go on with it", by="alice")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body
        await world.github.changed(lambda: "`alice` said yes" in live.body, 20)
        assert "Answer with" not in live.body and "- [ ]" not in live.body
    head = world.pulls()[0].head
    assert world.repo.file(head, "half.txt") == b"half\n" and world.repo.file(head, "built.txt") == b""


async def test_hosts_that_were_blocked_are_asked_about_and_a_yes_opens_them_to_the_next_turn_only(world: World) -> None:
    reach = Call("Bash", {"command": REACH, "description": "Get the prices"})
    world.model.default(Script([reach, Say("The prices are out of reach.")]))
    async with world.bot():
        world.say("/claude get the prices")
        world.say(f"/claude approve {await asked(world)} session")
        assert await world.outcome() == "no_change", world.replies()[0].body
        assert "files.example.invalid 403" in results(world)
        live = await world.github.changed(lambda: shows(world, "Access to these hosts: `files.example.invalid`"), 20)
        assert "github.com" not in live.body.split("Access to these hosts")[1].split("\n")[0], "which no yes opens"
        world.github.tick(live, "Yes, and go on with it", by="alice")
        assert await world.outcome(2) == "no_change", world.replies()[-1].body
        assert "files.example.invalid 502" in results(world), "let through; there is no such name"
        assert "github.com 403" in results(world)
        for n, words in ((3, "/claude retry"), (4, "/claude and once more")):
            world.say(words)
            assert await world.outcome(n) == "no_change", world.replies()[-1].body
            heard = results(world).split("files.example.invalid ")
            assert heard[-1].startswith("403") and len(heard) == n + 1, words


async def test_the_one_question_that_was_left_needs_no_name(world: World) -> None:
    world.model.default(Script([RUN, Say("unreachable")]))
    ahead = 0.0
    async with world.bot(lambda: time.time() + ahead):
        world.say("/claude build")
        await asked(world)
        ahead = 700.0
        assert await world.outcome() == "needs_input", world.replies()[0].body
        world.model.default(Script([RUN, Say("Built.")]))
        world.say("/claude approve")
        assert await world.outcome(2) == "pull_request", world.replies()[-1].body


@pytest.mark.parametrize("told", [True, False])
async def test_a_yes_that_the_agent_was_not_told_of_before_it_ended_begins_the_next_turn(
    tmp_path: Path, told: bool
) -> None:
    store = await Store.open(tmp_path / "state.db")
    key = await sessions.begin_turn(store, a_turn("comment:1"))
    assert key is not None
    matter = {"tool": "Bash", "shown": "touch built.txt", "call": "x"}
    question = await approvals.ask(store, ApprovalRequest(key, ApprovalKind.TOOL, matter, time.time() + 600, "r1"))
    yes = ApprovalAnswer(
        ApprovalState.APPROVED, "alice", "comment:2", Scope.ONCE, LATE, a_turn("comment:2", question.id)
    )
    assert await approvals.answer(store, question.id, yes)
    touched: list[TurnKey] = []
    services = SimpleNamespace(store=store, board=SimpleNamespace(touch=touched.append))
    turn = await sessions.turn(store, key)
    for _ in range(2):  # as after a crash
        await dialogue.close_questions(cast(Services, services), turn, cast(Any, Ended(told)))
    [found] = await approvals.of_turn(store, key)
    assert found.state is ApprovalState.APPROVED and found.late is not told
    turns = await sessions.turns_of(store, key.session)
    assert [one.approval for one in turns] == [None] + [question.id] * (not told)
    assert touched == [one.key for one in turns[1:]]
    await store.close()


@pytest.mark.parametrize("first", ["yes", "time"])
async def test_a_yes_in_the_moment_in_which_its_time_is_over_counts_once(world: World, first: str) -> None:
    """Whichever of the two comes first: it need not be said again, and the call is made once."""
    count = Call("Bash", {"command": "echo once >> built.txt", "description": "Build it"})
    world.model.default(Script([count, Say("Built.")]))
    ahead = 0.0
    async with world.bot(lambda: time.time() + ahead):
        world.say("/claude build")
        question = await asked(world)
        ahead = 599.5 if first == "yes" else 600.5
        world.say(f"/claude approve {question}")
        ahead = 600.5
        pull = await world.github.changed(lambda: next(iter(world.pulls()), None), 60)
        assert await world.outcome(len(world.states())) == "pull_request"
    assert world.repo.file(pull.head, "built.txt") == b"once\n"


@dataclass
class Ended:
    """An environment whose agent has ended."""

    told: bool

    async def permit(self, turn: int, request_id: str) -> bool:
        return self.told


@pytest.mark.parametrize("how", ["terminate", "kill"])
async def test_a_question_survives_a_restart_and_is_asked_once(world: World, how: str) -> None:
    world.model.default(Script([RUN, Say("Built.")]))
    first = await Service.start(world)
    assert first is not None
    world.say("/claude build")
    question = await asked(world)
    await (first.stop() if how == "terminate" else first.kill())
    second = await Service.start(world)
    assert second is not None
    try:
        world.say(f"/claude approve {question}")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    finally:
        await second.stop()
    assert sum("forgehand:ask=" in one.body for one in world.replies()) == 1
    assert len(world.states()) == 1


@pytest.mark.acceptance("B15")
async def test_stop_ends_a_turn_that_waits_for_an_answer(world: World) -> None:
    world.model.default(Script([RUN, Wait("never"), Say("unreachable")]))
    async with world.bot():
        world.say("/claude build")
        await asked(world)
        world.say("/claude stop")
        assert await world.outcome(timeout=20) == "stopped"


async def test_a_denied_tool_is_denied_without_a_question(world: World) -> None:
    config = {".github/forgehand.yml": "permission: ask\ntools:\n  allowed: ['Bash(touch *)']\n  denied: [WebFetch]\n"}
    world.github.commit(world.repo, "main", config, by="alice")
    world.model.default(Script([RUN, Say("Built.")]))
    async with world.bot():
        world.say("/claude build")
        assert await world.outcome() == "pull_request", world.replies()[0].body
    assert not any("forgehand:ask=" in one.body for one in world.replies())
    assert "WebFetch" not in next(one for one in world.model.requests if one.has_tools).tool_names
