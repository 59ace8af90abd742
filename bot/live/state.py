"""Fold the stored events of a turn into what its agent does now: the same events always give the same picture."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from dataclasses import dataclass, field, replace

from bot.loops import in_portions
from bot.models import TurnKey
from bot.store import conversation
from bot.store.base import Store
from sandbox.agents.base import Agent, Decoder
from sandbox.agents.events import (
    SPAWNING,
    TODO_TOOLS,
    AgentEnded,
    AgentEvent,
    AgentSaid,
    FileChanged,
    PermissionAsked,
    Retrying,
    SessionStarted,
    SubagentRefused,
    Todo,
    TodoChanged,
    ToolCalled,
    ToolReturned,
)

RECENT_TOOLS = 8
MOST_FILES = 500
LOG_LINES = 40
LOG_LINE_LENGTH = 160
REFUSED_STATUSES = (401, 403)
NOT_PASSED_ON = "(not passed on: they may no longer write to this repository)"
MOST_ASKED = 100
"""Further questions of a turn get no answer."""
MOST_SPAWNING = 1000
PAGE = 500


@dataclass
class ToolCall:
    """A tool call and, once it has returned, its result."""

    id: str
    name: str
    title: str
    began_at: float
    ok: bool | None = None
    summary: str = ""


@dataclass
class LiveState:
    """Mutable on purpose: one per turn, fed in order, read by the renderer."""

    model: str = ""
    todo: tuple[Todo, ...] = ()
    tools: list[ToolCall] = field(default_factory=list)
    tool_count: int = 0
    said: str = ""
    retrying: Retrying | None = None
    refused_status: int | None = None
    """The provider does not accept our credential: no retry will help."""
    ended: AgentEnded | None = None
    asked: dict[str, PermissionAsked] = field(default_factory=dict)
    spawning: dict[str, int] = field(default_factory=dict)
    """Requests for sub-agents, each with the number that its sub-agent would have."""
    spawns_refused: int = 0
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By path: lines (added, removed) by its editing tools."""
    log: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    """The last things that it said and did, with their times."""
    pulse_at: float | None = None
    heard: list[tuple[str, str]] = field(default_factory=list)
    """Words that people sent to the agent while it worked, each with its author."""

    def copy(self) -> LiveState:
        return replace(
            self,
            tools=[replace(tool) for tool in self.tools],
            asked=dict(self.asked),
            spawning=dict(self.spawning),
            files=dict(self.files),
            log=deque(self.log, maxlen=LOG_LINES),
            heard=list(self.heard),
        )

    @property
    def current(self) -> ToolCall | None:
        """Return the latest tool that has not returned."""
        return next((tool for tool in reversed(self.tools) if tool.ok is None), None)

    @property
    def last_words(self) -> str:
        """Return the agent's own words: those of a failed end are its program's."""
        return self.ended.text if self.ended is not None and self.ended.ok and self.ended.text else self.said

    def apply(self, event: AgentEvent, at: float) -> None:
        self.pulse_at = at
        if not isinstance(event, Retrying):
            self.retrying = None
        match event:
            case SessionStarted():
                self.model = event.model
            case AgentSaid() if event.parent is None:
                self.said = event.text
                self._note(at, event.text)
            case ToolCalled() | ToolReturned():
                self._tool(event, at)
            case FileChanged() if event.path in self.files or len(self.files) < MOST_FILES:
                added, removed = self.files.get(event.path, (0, 0))
                self.files[event.path] = added + event.added, removed + event.removed
            case TodoChanged():
                self.todo = event.items
            case Retrying():
                self.retrying = event
                self.refused_status = event.status if event.status in REFUSED_STATUSES else self.refused_status
            case AgentEnded():
                self.ended = event
            case PermissionAsked() | SubagentRefused():
                self._asks(event)
            case _:
                pass

    def told(self, line: str) -> None:
        """Apply a line of our own between the agent's; an unknown kind changes nothing."""
        with contextlib.suppress(ValueError, KeyError, TypeError):
            found = json.loads(line)
            if "note" in found:  # the agent was started again: its earlier end no longer counts
                self.ended = None
                return
            words = NOT_PASSED_ON if found.get("withheld") is True else str(found["text"])
            self.heard.append((str(found["author"]), words))

    def _asks(self, event: PermissionAsked | SubagentRefused) -> None:
        if isinstance(event, SubagentRefused):
            self.spawns_refused += 1
        elif event.tool not in SPAWNING:
            if len(self.asked) < MOST_ASKED:
                self.asked[event.request_id] = event
        elif len(self.spawning) < MOST_SPAWNING:
            self.spawning[event.request_id] = len(self.spawning) + 1 - self.spawns_refused

    def _tool(self, event: ToolCalled | ToolReturned, at: float) -> None:
        if isinstance(event, ToolCalled):
            if event.name in TODO_TOOLS:  # the list itself is shown
                return
            self.tool_count += 1
            self.tools.append(ToolCall(event.id, event.name, event.title, at))
            self._note(at, f"{event.name}: {event.title}")
            del self.tools[:-RECENT_TOOLS]
            return
        for tool in self.tools:
            if tool.id == event.id:
                tool.ok, tool.summary = event.ok, event.summary
                self._note(at, f"{'ok' if event.ok else 'failed'}: {event.summary}")

    def _note(self, at: float, text: str) -> None:
        line = next((one.strip() for one in text.splitlines() if one.strip()), "")
        self.log.append((at, line[:LOG_LINE_LENGTH]))


@dataclass
class _Fold:
    decoder: Decoder
    state: LiveState = field(default_factory=LiveState)
    seq: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Folds:
    """A cache over `events`: dropping an entry only costs a re-read."""

    def __init__(self, store: Store, agent: Agent) -> None:
        self._store = store
        self._agent = agent
        self._folds: dict[TurnKey, _Fold] = {}

    async def of(self, key: TurnKey) -> LiveState:
        fold = self._folds.setdefault(key, _Fold(self._agent.decoder()))
        async with fold.lock:
            while rows := await conversation.events_of_turn(self._store, key, fold.seq, PAGE):
                async for row in in_portions(rows):
                    if row.kind == conversation.STREAM:
                        for event in fold.decoder.feed(row.line):
                            fold.state.apply(event, row.at)
                    else:
                        fold.state.told(row.line)
                    fold.seq = row.seq
        return fold.state

    def forget(self, key: TurnKey) -> None:
        self._folds.pop(key, None)
