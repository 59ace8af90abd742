"""Defines the events that an agent's output stream decodes into, the same for every agent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SessionStarted:
    agent_session_id: str
    model: str
    version: str


@dataclass(frozen=True)
class ModelAnswered:
    """The main agent got an answer. It fills `tokens` of the model's `window`, which is 0 if nobody knows it."""

    model: str
    tokens: int
    window: int


@dataclass(frozen=True)
class ModelSwitched:
    """The agent's program asks the fallback from now on. That counts once the fallback has answered."""

    model: str
    fallback: str
    reason: str  # overloaded, server_error, model_not_found, permission_denied, refusal, …


@dataclass(frozen=True)
class ContextCompacted:
    """The program has replaced most of the conversation by a summary."""

    before: int
    after: int


@dataclass(frozen=True)
class AgentSaid:
    text: str
    parent: str | None = None  # set when a sub-agent said it


@dataclass(frozen=True)
class ToolCalled:
    id: str
    name: str
    title: str  # one line for people: `pytest -q`, `src/calc.py`, a URL
    input: dict[str, Any] = field(default_factory=dict)
    parent: str | None = None


@dataclass(frozen=True)
class ToolReturned:
    id: str
    ok: bool
    summary: str  # bounded: the first lines of the result
    text: str = field(default="", compare=False, repr=False)  # more of it, also bounded


@dataclass(frozen=True)
class FileChanged:
    """An editing tool changed a file. Commands change files without such an event."""

    path: str
    added: int
    removed: int


@dataclass(frozen=True)
class Todo:
    text: str
    state: str  # pending, in_progress or completed


@dataclass(frozen=True)
class TodoChanged:
    items: tuple[Todo, ...]


@dataclass(frozen=True)
class Retrying:
    """The agent waits before it repeats a request to the model."""

    attempt: int
    status: int | None  # HTTP status; None for a network error
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
class SideAnswered:
    """The end of a question that was asked beside the work; not `ok`: there is no answer."""

    request_id: str
    text: str
    ok: bool


@dataclass(frozen=True)
class SubagentRefused:
    """A sub-agent was called and did not start: too many `at_once`, or the host said no."""

    at_once: bool


@dataclass(frozen=True)
class AgentEnded:
    """A result line. The last one counts, and the run is over only when its process exits."""

    ok: bool
    reason: str  # completed, max_turns, budget_exhausted, aborted, api_error, …
    text: str
    errors: tuple[str, ...] = ()
    turns: int = 0
    api_status: int | None = None
    structured: dict[str, Any] | None = None


@dataclass(frozen=True)
class AgentNoted:
    """A sign of life with no further meaning."""

    kind: str


@dataclass(frozen=True)
class Unreadable:
    """A line that breaks the protocol: counted, never fatal."""

    reason: str


SPAWNING = frozenset(("Agent", "Task"))  # tools that start a sub-agent
NO_MORE_SUBAGENTS = "No more sub-agents may be started in this turn."
"""The first words of the host's refusal, by which the decoder recognises it."""
TODO_TOOLS = frozenset(("TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"))
"""Tools by which agents keep their todo list; TodoChanged shows their effect."""

AgentEvent = (
    SessionStarted
    | ModelAnswered
    | ModelSwitched
    | ContextCompacted
    | AgentSaid
    | ToolCalled
    | ToolReturned
    | FileChanged
    | TodoChanged
    | Retrying
    | PermissionAsked
    | SideAnswered
    | SubagentRefused
    | AgentEnded
    | AgentNoted
    | Unreadable
)
