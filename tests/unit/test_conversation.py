"""Lines of a stream as entries to read: a call becomes one with its result, edits become diffs, floods are bounded."""

from __future__ import annotations

import json

from bot.models import SessionId
from bot.store.conversation import StoredEvent
from bot.web.pages import conversation
from bot.web.pages.conversation import Conversation
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
    assert (talk.entries["e1-0"].result, talk.entries["e1-0"].ok) == ("a\nb", True)


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


def test_floods_are_bounded_and_it_is_said() -> None:
    talk = Conversation(ClaudeDecoder)
    for seq in range(1, conversation.MOST_ENTRIES + 11):
        talk.feed(said(seq, f"Words {seq}."))
    assert (len(talk.entries), talk.dropped) == (conversation.MOST_ENTRIES, 10)
    long = conversation.changes({"file_path": "a", "content": "x\n" * 5000})
    assert len(long) == conversation.MOST_DIFF_LINES + 1 and "4600 lines more" in long[-1][1]
