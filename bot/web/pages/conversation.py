"""Turns a session's stream into a conversation: entries in order, each with the line that changed it last."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bot.live.state import LiveState, place_of
from bot.store.conversation import StoredEvent
from sandbox.agents import events
from sandbox.agents.base import Decoder, same_around

MOST_ENTRIES = 2000
"""A page shows the newest; the raw log has all."""
MOST_DIFF_LINES = 400
COMPARED = 40
MOST_INPUT = 4000
MOST_SAID = 20_000
LINE_SIZE = 20
SPEAKING = {"Bash": "command", "Write": "content", "WebFetch": "prompt", "Agent": "prompt", "Task": "prompt"}
_KINDS = {"+": "add", "-": "del", "@": "hunk", " ": "same"}


@dataclass
class ConversationEntry:
    """Mutable, because a tool call and its result become one entry."""

    id: str
    turn: int
    at: float
    changed: int  # the `seq` of the line that changed it last
    kind: str  # said, tool, note or ended
    title: str = ""
    text: str = ""
    tool: str = ""
    ok: bool | None = None
    result: str = ""
    diff: list[tuple[str, str]] = field(default_factory=list)
    """(add, del, hunk or same; the line)."""
    inner: bool = False  # of a sub-agent

    @property
    def size(self) -> int:
        """Estimate the time to draw it; a line of a diff takes as long as some words."""
        return len(self.text) + len(self.result) + sum(len(line) + LINE_SIZE for _, line in self.diff)


class Conversation:
    """Feed it the lines in order; the same lines always give the same entries."""

    def __init__(self, decoder: Callable[[], Decoder]) -> None:
        self.entries: dict[str, ConversationEntry] = {}
        self.states: dict[int, LiveState] = {}
        self.seq = 0
        self.dropped = 0
        self._decoder = decoder
        self._decoders: dict[int, Decoder] = {}
        self._tools: dict[tuple[int, str], str] = {}

    def feed(self, row: StoredEvent) -> None:
        decoder = self._decoders.setdefault(row.turn, self._decoder())
        state = self.states.setdefault(row.turn, LiveState())
        for part, event in enumerate(decoder.feed(row.line)):
            state.apply(event, row.at)
            self._take(event, row, part)
        self.seq = row.seq
        while len(self.entries) > MOST_ENTRIES:
            self.drop_oldest()

    def drop_oldest(self) -> str:
        name = next(iter(self.entries))
        del self.entries[name]
        self.dropped += 1
        return name

    def since(self, seq: int) -> list[ConversationEntry]:
        """List the entries changed after that line, in the order of their last change."""
        changed = [entry for entry in self.entries.values() if entry.changed > seq]
        return sorted(changed, key=lambda entry: entry.changed)

    def _take(self, event: events.AgentEvent, row: StoredEvent, part: int) -> None:
        made = ConversationEntry(place_of(row.seq, part), row.turn, row.at, row.seq, "note")
        match event:
            case events.AgentSaid():
                made.kind, made.text, made.inner = "said", event.text[:MOST_SAID], event.parent is not None
            case events.ToolCalled() if event.name not in events.TODO_TOOLS:
                self._called(event, made)
            case events.ToolReturned():
                entry = self.entries.get(self._tools.pop((row.turn, event.id), ""))
                if entry is not None:
                    entry.ok, entry.result, entry.changed = event.ok, event.text or event.summary, row.seq
                return
            case events.Retrying():
                made.text = f"The model's provider does not answer ({event.status or event.error}); trying again."
            case events.PermissionAsked():
                made.text = f"The agent asks to use {event.tool}: {event.title}"
            case events.AgentEnded() if not event.ok:
                made.kind, made.text = "ended", "\n".join([event.reason, *event.errors])
            case events.Unreadable():
                made.text = "One line of the agent's output could not be read."
            case _:
                return
        self.entries[made.id] = made

    def _called(self, event: events.ToolCalled, made: ConversationEntry) -> None:
        made.kind, made.tool, made.title, made.inner = "tool", event.name, event.title, event.parent is not None
        made.diff = changes(event.input)
        said = event.input.get(SPEAKING.get(event.name, ""), "")
        made.text = said[:MOST_INPUT] if isinstance(said, str) and not made.diff else ""
        self._tools[(made.turn, event.id)] = made.id


def changes(tool_input: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the change of an editing tool as a diff, and nothing for other tools."""
    edits = tool_input.get("edits")
    pairs = edits if isinstance(edits, list) else [tool_input]
    found: list[tuple[str, str]] = []
    for one in pairs[:20]:
        if not isinstance(one, dict) or not isinstance(one.get("new_string"), str):
            continue
        before = one.get("old_string")
        found += _diff(before if isinstance(before, str) else "", one["new_string"])
    if not found and isinstance(tool_input.get("content"), str) and "file_path" in tool_input:
        found = [("add", line) for line in tool_input["content"].splitlines()]
    if len(found) > MOST_DIFF_LINES:
        found = [*found[:MOST_DIFF_LINES], ("hunk", f"… and {len(found) - MOST_DIFF_LINES} lines more")]
    return found


def _diff(before: str, after: str) -> list[tuple[str, str]]:
    """Compare line by line only if there are few lines, because the time may grow with their cube."""
    old, new = before.splitlines()[:MOST_DIFF_LINES], after.splitlines()[:MOST_DIFF_LINES]
    begin, end = same_around(old, new)
    less, more = old[begin : len(old) - end], new[begin : len(new) - end]
    if max(len(less), len(more)) > COMPARED:
        around = old[max(0, begin - 3) : begin], old[len(old) - end :][:3]
        parts = (("same", around[0]), ("del", less), ("add", more), ("same", around[1]))
        return [(kind, line) for kind, lines in parts for line in lines]
    cut = max(0, begin - 3), end - min(3, end)
    old, new = old[cut[0] : len(old) - cut[1]], new[cut[0] : len(new) - cut[1]]
    lines = list(difflib.unified_diff(old, new, n=3, lineterm=""))[3:]
    return [(_KINDS[line[:1]], line[1:]) for line in lines]
