"""Fold the stored events of a turn into what its agent does now: the same events always give the same picture."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

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
    ContextCompacted,
    FileChanged,
    ModelAnswered,
    ModelSwitched,
    PermissionAsked,
    Retrying,
    SessionStarted,
    SideAnswered,
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
MOST_CHECKS = 100
LONGEST_CHECK = 300
_CHECK = re.compile(
    r"\b(?:\w*tests?|checks?|lint|mypy|ruff|flake8|tsc|eslint|tox|nox|jest|vitest|rspec|phpunit|make|cargo|go (?:build"
    r"|vet)|gradlew?|mvn|build)\b"
)
"""Commands that judge the code. Others may fail for many reasons."""


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
class AgentCheck:
    """A check that the agent ran: the places in the stream where it first failed, and where it passed last."""

    command: str
    failed: str = ""
    passed: str = ""


@dataclass
class LiveState:
    """Mutable on purpose: one per turn, fed in order, read by the renderer."""

    model: str = ""
    """The one that answered last."""
    switch: ModelSwitched | None = None
    """The switch to a fallback that has answered, even if the first model answers again."""
    context: ModelAnswered | None = None
    compactions: int = 0
    todo: tuple[Todo, ...] = ()
    tools: list[ToolCall] = field(default_factory=list)
    tool_count: int = 0
    is_acting: bool = False
    """The last thing it did was a tool call, so it will ask the model again; words may be its last."""
    said: str = ""
    retrying: Retrying | None = None
    refused_status: int | None = None
    """The provider does not accept our credential: no retry will help."""
    ended: AgentEnded | None = None
    asked: dict[str, PermissionAsked] = field(default_factory=dict)
    answers: dict[str, SideAnswered] = field(default_factory=dict)
    """By request: the ends of questions that were asked beside the work."""
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
    trials: dict[str, AgentCheck] = field(default_factory=dict)
    """By command."""
    _switching: ModelSwitched | None = None
    _trying: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By the call's id: the command of a check, and its place."""

    def copy(self) -> LiveState:
        return replace(
            self,
            tools=[replace(tool) for tool in self.tools],
            asked=dict(self.asked),
            answers=dict(self.answers),
            spawning=dict(self.spawning),
            files=dict(self.files),
            log=deque(self.log, maxlen=LOG_LINES),
            heard=list(self.heard),
            trials={command: replace(one) for command, one in self.trials.items()},
            _trying=dict(self._trying),
        )

    @property
    def current(self) -> ToolCall | None:
        """Return the latest tool that has not returned."""
        return next((tool for tool in reversed(self.tools) if tool.ok is None), None)

    @property
    def last_words(self) -> str:
        """Return the agent's own words: those of a failed end are its program's."""
        return self.ended.text if self.ended is not None and self.ended.ok and self.ended.text else self.said

    @property
    def proof(self) -> AgentCheck | None:
        """Return the check that the agent saw fail first and pass in the end."""
        return next((one for one in reversed(self.trials.values()) if one.failed and one.passed), None)

    def apply(self, event: AgentEvent, at: float, place: str = "") -> None:
        """`place` names the event on the session's page."""
        self.pulse_at = at
        if not isinstance(event, Retrying):
            self.retrying = None
        match event:
            case SessionStarted() | ModelAnswered() | ModelSwitched() | ContextCompacted():
                self._answers(event)
            case AgentSaid() if event.parent is None:
                self.said = event.text
                self.is_acting = False
                self._note(at, event.text)
            case ToolCalled() | ToolReturned():
                self.is_acting = True
                self._tool(event, at)
                self._try(event, place)
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
            case PermissionAsked() | SideAnswered() | SubagentRefused():
                self._asks(event)
            case _:
                pass

    def told(self, line: str) -> None:
        """Apply a line of our own between the agent's; an unknown kind changes nothing."""
        if (heard := words_heard(line)) is not None:
            self.heard.append(heard)
        elif '"note"' in line:  # the agent was started again: its earlier end no longer counts
            self.ended = None

    def _answers(self, event: SessionStarted | ModelAnswered | ModelSwitched | ContextCompacted) -> None:
        match event:
            case SessionStarted():
                self.model = event.model
            case ModelSwitched():
                self._switching = event
            case ContextCompacted():
                self.compactions += 1
            case ModelAnswered():
                self.model, self.context = event.model, event
                if self._switching is not None and self._switching.fallback == event.model:
                    self.switch = self._switching

    def _asks(self, event: PermissionAsked | SideAnswered | SubagentRefused) -> None:
        if isinstance(event, SubagentRefused):
            self.spawns_refused += 1
        elif isinstance(event, SideAnswered):
            if len(self.answers) < MOST_ASKED:
                self.answers[event.request_id] = event
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

    def _try(self, event: ToolCalled | ToolReturned, place: str) -> None:
        if isinstance(event, ToolCalled):
            command = event.input.get("command")
            if is_check(command):
                self._trying[event.id] = " ".join(command.split()), place
                _bound(self._trying)
            return
        if (called := self._trying.pop(event.id, None)) is None:
            return
        command, place = called
        trial = self.trials.pop(command, None) or AgentCheck(command)
        self.trials[command] = trial  # the latest one stands last
        _bound(self.trials)
        trial.passed = place if event.ok else ""
        trial.failed = trial.failed or ("" if event.ok else place)

    def _note(self, at: float, text: str) -> None:
        line = next((one.strip() for one in text.splitlines() if one.strip()), "")
        self.log.append((at, line[:LOG_LINE_LENGTH]))


def _bound(kept: dict[str, Any]) -> None:
    if len(kept) > MOST_CHECKS:
        del kept[next(iter(kept))]


def is_check(command: object) -> TypeGuard[str]:
    return isinstance(command, str) and len(command) <= LONGEST_CHECK and _CHECK.search(command) is not None


def words_heard(line: str) -> tuple[str, str] | None:
    """Return the author and the words of a line of ours that says what the agent heard."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        found = json.loads(line)
        words = NOT_PASSED_ON if found.get("withheld") is True else str(found["text"])
        return str(found["author"]), words
    return None


def place_of(seq: int, part: int) -> str:
    """Name an event by its line and its place in it, for a link to it."""
    return f"e{seq}-{part}"


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
                        for part, event in enumerate(fold.decoder.feed(row.line)):
                            fold.state.apply(event, row.at, place_of(row.seq, part))
                    else:
                        fold.state.told(row.line)
                    fold.seq = row.seq
        return fold.state

    def forget(self, key: TurnKey) -> None:
        self._folds.pop(key, None)
