"""What an agent is to us: how it is started, how it is spoken to, and how its output is read."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sandbox.agents.events import AgentEvent
from sandbox.primitives import Layout


@dataclass(frozen=True)
class Subagents:
    """How many further agents may help: `at_once`, which its program sees to, and `most` in a turn, which the host does
    by answering each `Asked` that is one of `SPAWNING`."""

    at_once: int
    most: int


@dataclass(frozen=True)
class AgentRun:
    """One run of the agent in a session."""

    turn: int
    prompt: str
    model: str
    token: str = field(repr=False)
    """Opaque: good at our gateway only, and only for this turn."""
    agent_session_id: str
    resume: bool
    max_turns: int | None
    budget_usd: float | None
    """Its program stops there by its own estimate, and tells the agent so; None where somebody else counts."""
    timeout_seconds: float
    instructions: str
    """Rules of the repository's base branch; empty for none."""
    allowed_tools: tuple[str, ...] = ()
    denied_tools: tuple[str, ...] = ()
    permission: str = "auto"
    """auto, ask or plan."""
    subagents: Subagents | None = None
    """None: as many as its program likes, and nobody is asked."""
    schema: dict[str, Any] | None = None
    attempt: int = 0
    """How often it was begun before, and lost."""
    beside: Mapping[str, Path] = field(default_factory=dict)
    """Files of the host that the prompt speaks of, by the names that they get in the run's context folder."""


class Decoder(Protocol):
    """Reads one run's output, line by line; never raises for what a line holds."""

    def feed(self, line: str | bytes) -> Sequence[AgentEvent]: ...


class Agent(Protocol):
    """One kind of agent. Nothing here does I/O."""

    @property
    def gateway_variable(self) -> str:
        """The variable in which the agent looks for its model's base URL."""
        ...

    @property
    def gateway_path(self) -> str:
        """What follows the gateway's address in it."""
        ...

    @property
    def final_type(self) -> str:
        """`type` of the line after which the agent waits for input."""
        ...

    def argv(self, run: AgentRun, layout: Layout) -> list[str]: ...

    def environment(self, run: AgentRun, layout: Layout) -> dict[str, str]: ...

    def message(self, text: str) -> bytes:
        """One line for its stdin: words of a person, taken as they stand."""
        ...

    def allow(self, request_id: str, tool_input: dict[str, Any] | None = None) -> bytes:
        """One line for its stdin: the tool call that it asked for may go on, as asked or with this input."""
        ...

    def deny(self, request_id: str, reason: str, *, interrupt: bool = False) -> bytes: ...

    def decoder(self) -> Decoder: ...

    def slim(self, line: bytes, cap: int) -> str:
        """The line as valid JSON of at most `cap` characters that decodes to the same events, texts perhaps
        shortened; "" for what cannot be read."""
        ...

    def transcript_path(self, layout: Layout, agent_session_id: str) -> str: ...

    def own_paths(self, layout: Layout) -> Sequence[str]:
        """Where it keeps what it remembers from run to run."""
        ...


def run_name(turn: int, attempt: int = 0) -> str:
    """Each attempt at a turn is a run of its own, with files of its own."""
    return f"turn-{turn}-{attempt}" if attempt else f"turn-{turn}"


def turn_folder(layout: Layout, turn: int, attempt: int = 0) -> str:
    """Where a turn's files lie inside the environment."""
    return posixpath.join(layout.out, run_name(turn, attempt))


def instructions_path(layout: Layout, turn: int, attempt: int = 0) -> str:
    return posixpath.join(turn_folder(layout, turn, attempt), "instructions.md")


def context_folder(layout: Layout, turn: int, attempt: int = 0) -> str:
    """Where the files beside a prompt lie: not in the work tree, so that nothing of them comes home."""
    return posixpath.join(turn_folder(layout, turn, attempt), "context")
