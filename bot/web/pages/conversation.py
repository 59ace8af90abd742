"""Turns a session's stream into a conversation: entries in order, each with the line that changed it last."""

from __future__ import annotations

import contextlib
import difflib
import json
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from bot.live.state import LiveState, is_check, place_of, words_heard
from bot.store.conversation import ANSWER_KIND, MESSAGE_KIND, NOTE_KIND, StoredEvent
from bot.words import on_models
from sandbox.agents import events
from sandbox.agents.base import Decoder, one_line, same_around

MOST_ENTRIES = 50_000
"""More than any agent's work needs. If one floods us, the raw log has the rest."""
DROPPED_AT_ONCE = 1000
MOST_HELD = 4 << 20
"""In characters: the contents that stay in memory, of the newest entries. Older ones are read again when needed."""
MOST_DIFF_LINES = 400
COMPARED = 40
MOST_INPUT = 4000
MOST_SAID = 20_000
LINE_SIZE = 20
SPEAKING = {"Bash": "command", "Write": "content", "WebFetch": "prompt", "Agent": "prompt", "Task": "prompt"}
DESCRIBED = {"Bash": "description"}
_KINDS = {"+": "add", "-": "del", "@": "hunk", " ": "same"}


@dataclass
class EntryContent:
    """The body of an entry; mutable, because a result comes later than its call."""

    text: str = ""
    result: str = ""
    diff: list[tuple[str, str]] = field(default_factory=list)
    """(add, del, hunk or same; the line)."""

    @property
    def size(self) -> int:
        """Estimate the time to draw it; a line of a diff takes as long as some words."""
        return len(self.text) + len(self.result) + sum(len(line) + LINE_SIZE for _, line in self.diff)

    def has(self, words: str) -> bool:
        """Search for words that are casefolded already."""
        texts = self.text, self.result, "\n".join(line for _, line in self.diff)
        return any(words in text.casefold() for text in texts)


@dataclass
class ConversationEntry:
    """Mutable, because a tool call and its result become one entry."""

    id: str
    place: tuple[int, int]
    """Its line and its place in it, by which entries are in order."""
    turn: int
    at: float
    changed: int  # the `seq` of the line that changed it last
    kind: str  # said, heard, tool, note or ended
    title: str = ""
    about: str = ""  # the agent's own description of a command
    tool: str = ""
    ok: bool | None = None
    ended_at: float | None = None
    inner: bool = False  # of a sub-agent
    judges: bool = False  # a command that checks the code
    content: EntryContent | None = None
    """None if it was let go; `lines` has it."""

    @property
    def lines(self) -> list[int]:
        """List the stored lines of which it is the fold."""
        return sorted({self.place[0], self.changed})

    @property
    def failed(self) -> bool:
        return self.ok is False or self.kind == "ended"

    @property
    def seconds(self) -> float | None:
        return None if self.ended_at is None else max(self.ended_at - self.at, 0.0)


class Conversation:
    """Feed it the lines in order; the same lines always give the same entries."""

    def __init__(self, decoder: Callable[[], Decoder]) -> None:
        self.entries: dict[str, ConversationEntry] = {}
        self.states: dict[int, LiveState] = {}
        self.seq = 0
        self.dropped = 0
        self._held = 0
        self._full: deque[str] = deque()
        """Entries with content, the oldest first."""
        self._changes: list[tuple[int, str]] = []
        """Each line that changed an entry, in order."""
        self._decoder = decoder
        self._decoders: dict[int, Decoder] = {}
        self._tools: dict[tuple[int, str], str] = {}

    def feed(self, row: StoredEvent) -> None:
        state = self.states.setdefault(row.turn, LiveState())
        if row.kind in (ANSWER_KIND, MESSAGE_KIND, NOTE_KIND):
            state.told(row.line)
            self._own(row)
        else:
            decoder = self._decoders.setdefault(row.turn, self._decoder())
            for part, event in enumerate(decoder.feed(row.line)):
                state.apply(event, row.at)
                self._take(event, row, part)
        self.seq = row.seq
        self._let_go()

    def since(self, seq: int) -> list[ConversationEntry]:
        """List the entries changed after that line, in the order of their last change."""
        begin = bisect_right(self._changes, seq, key=lambda one: one[0])
        latest = {name: changed for changed, name in self._changes[begin:]}
        found = [self.entries[name] for name in latest if name in self.entries]
        return sorted(found, key=lambda entry: entry.changed)

    def _let_go(self) -> None:
        """Drop contents and, in a flood, whole entries, the oldest first."""
        while self._held > MOST_HELD and self._full:
            entry = self.entries.get(self._full.popleft())
            if entry is not None and entry.content is not None:
                self._held -= entry.content.size
                entry.content = None
        if len(self.entries) < MOST_ENTRIES + DROPPED_AT_ONCE:
            return
        for name in list(self.entries)[:DROPPED_AT_ONCE]:
            content = self.entries.pop(name).content
            self._held -= content.size if content is not None else 0
        self.dropped += DROPPED_AT_ONCE
        self._changes = [one for one in self._changes if one[1] in self.entries]

    def _put(self, made: ConversationEntry, content: EntryContent) -> None:
        made.content = content
        self.entries[made.id] = made
        self._held += content.size
        self._full.append(made.id)
        self._changes.append((made.changed, made.id))

    def _own(self, row: StoredEvent) -> None:
        """Show a line of ours: a person's words for the agent, or why it was started again."""
        made = ConversationEntry(place_of(row.seq, 0), (row.seq, 0), row.turn, row.at, row.seq, "note")
        heard = words_heard(row.line)
        if heard is not None:
            made.kind, made.title = "heard", one_line(heard[0])
            self._put(made, EntryContent(heard[1][:MOST_SAID]))
        elif row.kind == ANSWER_KIND:
            self._answered(row, made)
        elif note := _note(row.line):
            self._put(made, EntryContent(note[:MOST_SAID]))

    def _answered(self, row: StoredEvent, made: ConversationEntry) -> None:
        """Show a question and its answer as two entries, like words of a person and of the agent."""
        with contextlib.suppress(ValueError, KeyError, TypeError):
            found = json.loads(row.line)
            made.kind, made.title = "heard", one_line(str(found["asked_by"]))
            self._put(made, EntryContent(str(found["question"])[:MOST_SAID]))
            said = replace(made, id=place_of(row.seq, 1), place=(row.seq, 1), kind="said", title="")
            self._put(said, EntryContent(str(found["answer"])[:MOST_SAID]))

    def _take(self, event: events.AgentEvent, row: StoredEvent, part: int) -> None:
        made = ConversationEntry(place_of(row.seq, part), (row.seq, part), row.turn, row.at, row.seq, "note")
        match event:
            case events.AgentSaid():
                made.kind, text, made.inner = "said", event.text[:MOST_SAID], event.parent is not None
            case events.ToolCalled() if event.name not in events.TODO_TOOLS:
                self._called(event, made)
                return
            case events.ToolReturned():
                self._returned(event, row)
                return
            case events.Retrying():
                text = f"The model's provider does not answer ({event.status or event.error}); trying again."
            case events.ModelSwitched():
                text = on_models.switched(event.model, event.fallback, event.reason)
            case events.ContextCompacted():
                text = on_models.compacted(event.before, event.after)
            case events.PermissionAsked():
                text = f"The agent asks to use {event.tool}: {event.title}"
            case events.AgentEnded() if not event.ok:
                made.kind, text = "ended", "\n".join([event.reason, *event.errors])
            case events.Unreadable():
                text = "One line of the agent's output could not be read."
            case _:
                return
        self._put(made, EntryContent(text))

    def _called(self, event: events.ToolCalled, made: ConversationEntry) -> None:
        made.kind, made.tool, made.title, made.inner = "tool", event.name, event.title, event.parent is not None
        about = event.input.get(DESCRIBED.get(event.name, ""), "")
        made.about = one_line(about) if isinstance(about, str) else ""
        made.judges = is_check(event.input.get("command"))
        diff = changes(event.input)
        said = event.input.get(SPEAKING.get(event.name, ""), "")
        self._put(made, EntryContent(said[:MOST_INPUT] if isinstance(said, str) and not diff else "", diff=diff))
        self._tools[(made.turn, event.id)] = made.id

    def _returned(self, event: events.ToolReturned, row: StoredEvent) -> None:
        entry = self.entries.get(self._tools.pop((row.turn, event.id), ""))
        if entry is None:
            return
        entry.ok, entry.ended_at, entry.changed = event.ok, row.at, row.seq
        self._changes.append((row.seq, entry.id))
        if entry.content is not None:
            entry.content.result = event.text or event.summary
            self._held += len(entry.content.result)


def _note(line: str) -> str:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(line)["note"])
    return ""


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
