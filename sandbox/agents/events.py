"""What an agent does, as events of our own: the same words for every agent, decoded from its output stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SessionStarted:
    agent_session_id: str
    model: str
    version: str


@dataclass(frozen=True)
class AgentSaid:
    """A block of the agent's own text."""

    text: str
    parent: str | None = None
    """Set when a sub-agent said it."""


@dataclass(frozen=True)
class ToolCalled:
    id: str
    name: str
    title: str
    """One line for people: `pytest -q`, `src/calc.py`, a URL."""
    input: dict[str, Any] = field(default_factory=dict)
    parent: str | None = None


@dataclass(frozen=True)
class ToolReturned:
    id: str
    ok: bool
    summary: str
    """Bounded: the first lines of the result."""
    text: str = field(default="", compare=False, repr=False)
    """More of it, for who has room: also bounded."""


@dataclass(frozen=True)
class FileChanged:
    """An editing tool has changed a file; what commands change is not told."""

    path: str
    added: int
    removed: int


@dataclass(frozen=True)
class Todo:
    text: str
    state: str
    """pending, in_progress or completed."""


@dataclass(frozen=True)
class TodoChanged:
    """The whole list after a change."""

    items: tuple[Todo, ...]


@dataclass(frozen=True)
class Retrying:
    """The agent waits to repeat a request at the model."""

    attempt: int
    status: int | None
    """HTTP status; None for a network error."""
    error: str
    delay_seconds: float


@dataclass(frozen=True)
class PermissionAsked:
    """The agent wants permission for a tool call and waits."""

    request_id: str
    tool: str
    title: str
    input: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SubagentRefused:
    """A sub-agent that was called and not started: too many `at_once`, or what the host has said no to."""

    at_once: bool


@dataclass(frozen=True)
class AgentEnded:
    """A result line. The run is over at process exit, not here; the last one counts."""

    ok: bool
    reason: str
    """completed, max_turns, budget_exhausted, aborted, api_error, ..."""
    text: str
    errors: tuple[str, ...] = ()
    turns: int = 0
    api_status: int | None = None
    structured: dict[str, Any] | None = None


@dataclass(frozen=True)
class AgentNoted:
    """A sign of life without further meaning to us."""

    kind: str


@dataclass(frozen=True)
class Unreadable:
    """A line that is not what the protocol promises: counted, never fatal."""

    reason: str


SPAWNING = frozenset(("Agent", "Task"))
"""Tools that start a sub-agent."""
NO_MORE_SUBAGENTS = "No more sub-agents may be started in this turn."
"""How the host begins its no, by which that is known again."""
TODO_TOOLS = frozenset(("TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"))
"""Tools by which agents keep their todo list: what they do is told by TodoChanged."""

AgentEvent = (
    SessionStarted
    | AgentSaid
    | ToolCalled
    | ToolReturned
    | FileChanged
    | TodoChanged
    | Retrying
    | PermissionAsked
    | SubagentRefused
    | AgentEnded
    | AgentNoted
    | Unreadable
)
