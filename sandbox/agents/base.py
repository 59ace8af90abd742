"""What an agent is to us: how it starts, hears and is read; its words without terminal codes."""

from __future__ import annotations

import posixpath
import re
import unicodedata
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


REPLACEMENT = "\ufffd"
_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links, the clipboard
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_SPACES = re.compile(r"\s+")


def storable(text: str) -> str:
    """No NUL (PostgreSQL refuses it) and no half of a surrogate pair (UTF-8 has none)."""
    if text.isascii() and "\0" not in text:
        return text
    return _SURROGATES.sub(REPLACEMENT, text).replace("\0", REPLACEMENT)


def clean(text: str) -> str:
    """As a terminal would have left it: codes gone, and of a line overwritten by carriage returns its last state."""
    plain = _ESCAPES.sub("", storable(text)).replace("\r\n", "\n")
    if "\r" in plain:
        plain = "\n".join(_last_state(line) for line in plain.split("\n"))
    return _CONTROLS.sub("", plain)


def one_line(text: str, limit: int = 160) -> str:
    """For titles: one line, also without characters that reorder or hide text."""
    shown = "".join(
        character
        for character in clean(text[: limit * 8])
        if character.isascii() or unicodedata.category(character) != "Cf"
    )
    return shorten(_SPACES.sub(" ", shown).strip(), limit)


def first_lines(text: str, *, lines: int = 12, limit: int = 1200) -> str:
    """The beginning of a tool's result."""
    kept = clean(text[: limit * 8]).strip("\n").split("\n")
    return shorten("\n".join(line.rstrip() for line in kept[:lines]), limit)


def shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def same_around(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines are the same at the beginning of both, and then at their end."""
    most = min(len(old), len(new))
    begin = next((at for at in range(most) if old[at] != new[at]), most)
    end = next((at for at in range(most - begin) if old[-1 - at] != new[-1 - at]), most - begin)
    return begin, end


def _last_state(line: str) -> str:
    parts = [part for part in line.split("\r") if part]
    return parts[-1] if parts else ""
