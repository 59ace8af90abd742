"""Knows what can be asked of us: a type for each command, and nothing of how people write it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.commands.options import NO_OPTIONS, Options


@dataclass(frozen=True)
class Run:
    """Free text: work. An empty prompt means the thread itself."""

    prompt: str
    options: Options = NO_OPTIONS


@dataclass(frozen=True)
class Ask:
    prompt: str
    options: Options = NO_OPTIONS


@dataclass(frozen=True)
class Plan:
    prompt: str
    options: Options = NO_OPTIONS


@dataclass(frozen=True)
class Review:
    prompt: str
    options: Options = NO_OPTIONS


@dataclass(frozen=True)
class Resolve:
    prompt: str
    options: Options = NO_OPTIONS


@dataclass(frozen=True)
class Continue:
    prompt: str
    extra_usd: float | None = None
    options: Options = NO_OPTIONS


@dataclass(frozen=True)
class Retry:
    options: Options = NO_OPTIONS


@dataclass(frozen=True)
class Stop:
    pass


@dataclass(frozen=True)
class FixCi:
    """The checks of a pull request that failed; the prompt is what is said beyond that."""

    prompt: str
    options: Options = NO_OPTIONS


@dataclass(frozen=True)
class StopCi:
    pass


@dataclass(frozen=True)
class Status:
    pass


@dataclass(frozen=True)
class Approve:
    words: str = ""
    """What stands below: the plan as the person edited it, or something for the agent that goes on."""
    approval: str | None = None
    """The id of what is meant, or a commit of a fork; None: the only thing that waits."""
    scope: str = "once"
    """Or `session`: the same again needs no other yes."""


@dataclass(frozen=True)
class Deny:
    reason: str = ""
    approval: str | None = None


@dataclass(frozen=True)
class Undo:
    pass


@dataclass(frozen=True)
class Why:
    pass


@dataclass(frozen=True)
class Cost:
    pass


@dataclass(frozen=True)
class Init:
    pass


@dataclass(frozen=True)
class Help:
    pass


Command = (
    Run
    | Ask
    | Plan
    | Review
    | Resolve
    | Continue
    | Retry
    | Stop
    | FixCi
    | StopCi
    | Status
    | Approve
    | Deny
    | Undo
    | Why
    | Cost
    | Init
    | Help
)


def word_of(command: Command) -> str:
    """The command's own word, as it is stored and shown: `run`, `fix ci`, …"""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(command).__name__).lower()
