"""Lines of a stream as entries to read: a call becomes one with its result, edits become diffs, floods are bounded."""

from __future__ import annotations

import json
from dataclasses import replace

from bot.models import SessionId
from bot.store.conversation import STREAM, StoredEvent
from bot.web.pages import conversation
from bot.web.pages.conversation import Conversation
from bot.web.pages.edits import SessionEdits
from sandbox.agents.claude import ClaudeDecoder


def row(seq: int, kind: str, *blocks: dict[str, object], turn: int = 1) -> StoredEvent:
    line = json.dumps({"type": kind, "message": {"role": kind, "content": list(blocks)}})
    return StoredEvent(SessionId("abcd1234"), seq, turn, kind, line, 1000.0 + seq)


def said(seq: int, text: str) -> StoredEvent:
    return row(seq, "assistant", {"type": "text", "text": text})


def called(seq: int, name: str, tool_input: dict[str, object]) -> StoredEvent:
    return row(seq, "assistant", {"type": "tool_use", "id": f"t{seq}", "name": name, "input": tool_input})


def returned(seq: int, of: int, text: str) -> StoredEvent:
    return row(seq, "user", {"type": "tool_result", "tool_use_id": f"t{of}", "content": text, "is_error": False})


def test_who_knows_a_part_is_told_the_rest_and_what_has_changed() -> None:
    talk = Conversation(ClaudeDecoder)
    for one in (called(1, "Bash", {"command": "ls"}), said(2, "Meanwhile."), returned(3, 1, "a\nb"), said(4, "End.")):
        talk.feed(one)
    assert [entry.id for entry in talk.since(0)] == ["e2-0", "e1-0", "e4-0"]
    assert [entry.id for entry in talk.since(2)] == ["e1-0", "e4-0"], "the call has its result since"
    assert talk.since(4) == []
    assert list(talk.entries) == ["e1-0", "e2-0", "e4-0"], "in the order in which they began"
    entry = talk.entries["e1-0"]
    assert entry.content is not None
    assert (entry.content.result, entry.ok, entry.seconds, entry.lines) == ("a\nb", True, 2.0, [1, 3])


def test_the_same_lines_give_the_same_entries_however_they_come() -> None:
    lines = [called(1, "Bash", {"command": "ls"}), returned(2, 1, "x"), said(3, "One."), said(4, "Two.")]
    whole, parts = Conversation(ClaudeDecoder), Conversation(ClaudeDecoder)
    seen: dict[str, conversation.ConversationEntry] = {}
    for one in lines:
        whole.feed(one)
    for one in lines:
        before = parts.seq
        parts.feed(one)
        seen |= {entry.id: entry for entry in parts.since(before)}
    assert seen == whole.entries


def test_an_edit_is_a_diff() -> None:
    diff = conversation.changes({"file_path": "a.py", "old_string": "one\ntwo\n", "new_string": "one\n2\n"})
    assert diff == [("same", "one"), ("del", "two"), ("add", "2")]
    assert conversation.changes({"file_path": "a.py", "content": "x\ny"}) == [("add", "x"), ("add", "y")]
    assert conversation.changes({"command": "rm"}) == []
    assert conversation.changes({"edits": [1, {"new_string": "a", "old_string": 5}]}) == [("add", "a")]


def test_session_page_floods_are_bounded_and_it_is_said() -> None:
    talk = Conversation(ClaudeDecoder)
    many = conversation.MOST_ENTRIES + conversation.DROPPED_AT_ONCE
    for seq in range(1, many + 11):
        talk.feed(said(seq, f"Words {seq}."))
    assert talk.dropped == conversation.DROPPED_AT_ONCE
    assert len(talk.entries) + talk.dropped == many + 10
    assert [entry.id for entry in talk.since(many + 9)] == [f"e{many + 10}-0"]
    long = conversation.changes({"file_path": "a", "content": "x\n" * 5000})
    assert len(long) == conversation.MOST_DIFF_LINES + 1 and "4600 lines more" in long[-1][1]


def test_session_page_lets_the_contents_of_the_oldest_entries_go_and_keeps_the_entries() -> None:
    talk = Conversation(ClaudeDecoder)
    for seq in range(1, 501):
        talk.feed(said(seq, "word " * 4000))
    held = [entry for entry in talk.entries.values() if entry.content is not None]
    assert len(talk.entries) == 500
    assert 100 < len(held) < 250
    assert held == list(talk.entries.values())[-len(held) :], "the newest ones"


def test_session_page_names_what_people_said_and_why_the_agent_was_started_again() -> None:
    talk = Conversation(ClaudeDecoder)
    talk.feed(called(1, "Bash", {"command": "pytest -q", "description": "Run\nthe tests"}))
    for seq, (kind, line) in enumerate(
        [
            ("message", {"type": "message", "author": "alice", "text": "Also the docs."}),
            ("message", {"type": "message", "author": "mallory", "withheld": True}),
            ("note", {"type": "forgehand", "note": "The sandbox was lost."}),
        ],
        start=2,
    ):
        talk.feed(StoredEvent(SessionId("abcd1234"), seq, 1, kind, json.dumps(line), 1000.0 + seq))
    call, alice, mallory, note = talk.entries.values()
    assert (call.about, call.title, call.judges) == ("Run the tests", "pytest -q", True)
    assert (alice.kind, alice.title) == ("heard", "alice") and alice.content is not None
    assert alice.content.text == "Also the docs."
    assert mallory.content is not None and "not passed on" in mallory.content.text
    assert note.kind == "note" and note.content is not None and note.content.text == "The sandbox was lost."


def test_edits_under_one_name_do_not_push_out_all_others() -> None:
    """An agent's output is only text: it may name a hundred calls alike."""
    edits = SessionEdits(SessionId("abcd1234"), None, ClaudeDecoder)  # type: ignore[arg-type]  # nothing is read
    for seq in range(1, 300):
        given = {"file_path": "a.py", "content": "x" * 20_000}
        call: dict[str, object] = {"type": "tool_use", "id": "same", "name": "Write", "input": given}
        edits._feed(replace(row(seq, "assistant", call), kind=STREAM))
    edits._feed(replace(called(300, "Write", {"file_path": "b.py", "content": "y"}), kind=STREAM))
    assert [one.path for one in edits.of_turns([1])] == ["a.py", "b.py"]
