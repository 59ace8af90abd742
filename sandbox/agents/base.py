"""Defines the protocol of an agent (how we start it, write to it and read it), and cleans its words."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import secrets
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sandbox.agents.events import AgentEvent
from sandbox.clients import PackageClients
from sandbox.primitives import Layout


@dataclass(frozen=True)
class Subagents:
    """How many further agents may help. The agent's program limits `at_once`. The host limits `most` per turn, by its
    answers to each `PermissionAsked` for a tool of `SPAWNING`."""

    at_once: int
    most: int


@dataclass(frozen=True)
class ToolServers:
    """MCP servers beside the agent's own tools."""

    named: tuple[str, ...] = ()  # reached through the gateway by these names
    programs: Mapping[str, str] = field(default_factory=dict)  # commands that run inside, by name
    asked: tuple[str, ...] = ()  # tools about which the agent always asks, by the names it knows

    def __bool__(self) -> bool:
        return bool(self.named or self.programs)


@dataclass(frozen=True)
class Plugin:
    """Skills, agents and commands that the host gives to the agent, as files by their paths."""

    name: str
    files: Mapping[str, bytes]
    executable: frozenset[str] = frozenset()


@dataclass(frozen=True)
class AgentRun:
    turn: int
    prompt: str
    model: str
    token: str = field(repr=False)  # opaque; valid only at our gateway and only for this turn
    agent_session_id: str
    resume: bool
    max_turns: int | None
    budget_usd: float | None  # the program stops there by its estimate and tells the agent; None: others count
    timeout_seconds: float
    instructions: str  # rules of the repository's base branch; empty for none
    allowed_tools: tuple[str, ...] = ()
    denied_tools: tuple[str, ...] = ()
    permission: str = "auto"  # auto, ask or plan
    subagents: Subagents | None = None  # None: no limit, and the agent does not ask
    servers: ToolServers = ToolServers()
    schema: dict[str, Any] | None = None
    basic_api: bool = False  # the model's provider takes no experimental parts of the API
    effort: str | None = None  # how hard the model thinks; None: as the program has it
    fallback: str | None = None  # the model that goes on when `model` is overloaded or not available
    task_tokens: int | None = None  # the model is told that it has about so many, and paces itself; None: it is not
    attempt: int = 0  # the number of this run in its turn, from 0
    beside: Mapping[str, Path] = field(default_factory=dict)  # the prompt's files on the host, by their names inside
    plugins: Sequence[Plugin] = ()
    clients: PackageClients | None = None  # None: no registry is open
    folder_rules: Mapping[str, str] = field(default_factory=dict)  # given to an agent that first touches the folder
    known_folders: tuple[str, ...] = ()  # whose rules the agent has already, but not its sub-agents


class Decoder(Protocol):
    """Reads one run's output, line by line. No line makes it raise."""

    def feed(self, line: str | bytes) -> Sequence[AgentEvent]: ...


class Agent(Protocol):
    """One kind of agent. Nothing here does I/O."""

    gateway_variable: str  # in which the agent looks for its model's base URL
    gateway_path: str  # to append to the gateway's address in that variable
    final_type: str  # the `type` of the line after which the agent waits for input

    def argv(self, run: AgentRun, layout: Layout) -> list[str]: ...
    def environment(self, run: AgentRun, layout: Layout) -> dict[str, str]: ...

    def message(self, text: str) -> bytes:
        """Encode a person's words as one line for stdin; the agent must not interpret commands in them."""

    def question(self, request_id: str, text: str) -> bytes:
        """Encode a question for beside the work: the agent answers it from what it knows, with no final line."""

    def allow(self, request_id: str, tool_input: dict[str, Any] | None = None) -> bytes:
        """Encode the line for stdin that allows a tool call, as asked or with this input."""

    def deny(self, request_id: str, reason: str, *, interrupt: bool = False) -> bytes: ...
    def decoder(self) -> Decoder: ...

    def slim(self, line: bytes, cap: int) -> str:
        """Return valid JSON of at most `cap` characters that decodes to the same events, with shorter texts if needed;
        "" if the line is unreadable."""

    def transcript_path(self, layout: Layout, agent_session_id: str) -> str: ...

    def own_paths(self, layout: Layout) -> Sequence[str]:
        """List the places of the agent's own memory between runs."""


def run_name(turn: int, attempt: int = 0) -> str:
    """Name a run. Each attempt of a turn is a separate run with separate files."""
    return f"turn-{turn}-{attempt}" if attempt else f"turn-{turn}"


def turn_folder(layout: Layout, turn: int, attempt: int = 0) -> str:
    return posixpath.join(layout.out, run_name(turn, attempt))


def instructions_path(layout: Layout, turn: int, attempt: int = 0) -> str:
    return posixpath.join(turn_folder(layout, turn, attempt), "instructions.md")


def folder_rules_path(layout: Layout, turn: int, attempt: int = 0) -> str:
    """Return the list of folders with rules; `runner/folder_rules` reads it."""
    return posixpath.join(turn_folder(layout, turn, attempt), "folder-rules.json")


def folder_rules_files(run: AgentRun, layout: Layout) -> dict[str, bytes]:
    """Write one file for each folder with rules, where the agent can read it, and the list of all."""
    named = {folder: f"{number:03}.md" for number, folder in enumerate(sorted(run.folder_rules), 1)}
    below = posixpath.join(context_folder(layout, run.turn, run.attempt), "rules")
    found = {posixpath.join(below, name): run.folder_rules[folder].encode() for folder, name in named.items()}
    listed = {
        "work": layout.work,
        "told": f"told-{secrets.token_hex(8)}",  # nothing of an earlier turn can foresee the name and say all was told
        "folders": [
            {"folder": folder, "file": name, "known": folder in run.known_folders} for folder, name in named.items()
        ],
    }
    path = folder_rules_path(layout, run.turn, run.attempt)
    return {**found, path: json.dumps(listed).encode()} if named else {}


def context_folder(layout: Layout, turn: int, attempt: int = 0) -> str:
    """Return the folder of the files beside a prompt. It is outside the work tree, so they do not come home."""
    return posixpath.join(turn_folder(layout, turn, attempt), "context")


def plugin_folder(layout: Layout, run: AgentRun, name: str) -> str:
    """Return the folder of a plugin, outside the work tree for the same reason. Nobody inside can know its path before
    the run and leave a hook there."""
    secret = hashlib.sha256(f"plugins:{run.token}".encode()).hexdigest()[:16]
    return posixpath.join(turn_folder(layout, run.turn, run.attempt), f"plugins-{secret}", name)


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
    """Replace NUL, which PostgreSQL refuses, and halves of surrogate pairs, which UTF-8 cannot encode."""
    if text.isascii() and "\0" not in text:
        return text
    return _SURROGATES.sub(REPLACEMENT, text).replace("\0", REPLACEMENT)


def clean(text: str) -> str:
    """Remove terminal codes. If carriage returns overwrote a line, keep its last state."""
    plain = _ESCAPES.sub("", storable(text)).replace("\r\n", "\n")
    if "\r" in plain:
        plain = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))
    return _CONTROLS.sub("", plain)


def one_line(text: str, limit: int = 160) -> str:
    """Make a title: one line, without characters that reorder or hide text."""
    shown = "".join(
        character
        for character in clean(text[: limit * 8])
        if character.isascii() or unicodedata.category(character) != "Cf"
    )
    return shorten(_SPACES.sub(" ", shown).strip(), limit)


def first_lines(text: str, *, lines: int = 12, limit: int = 1200) -> str:
    kept = clean(text[: limit * 8]).strip("\n").split("\n")
    return shorten("\n".join(line.rstrip() for line in kept[:lines]), limit)


def shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def same_around(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Count the lines that both have in common at the beginning, and then at the end."""
    most = min(len(old), len(new))
    begin = next((at for at in range(most) if old[at] != new[at]), most)
    end = next((at for at in range(most - begin) if old[-1 - at] != new[-1 - at]), most - begin)
    return begin, end
