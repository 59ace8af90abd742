"""What an execution reports: pieces of a stream, how a run stands, what commands and the collecting of work gave."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Chunk:
    """Whole lines of a run's output, in order."""

    lines: tuple[str, ...]
    """Valid JSON, perhaps shortened; "" stands for a line that could not be read."""
    next_offset: int
    """Bytes of the output that this chunk and all before it cover: follow again from here."""
    skipped: int = 0
    """How many of the lines could not be read."""


class RunState(StrEnum):
    NOT_STARTED = "not_started"
    RUNNING = "running"
    EXITED = "exited"
    LOST = "lost"
    """It ran, it is gone, and nothing says how it ended."""


@dataclass(frozen=True)
class RunStatus:
    state: RunState
    exit_code: int | None = None
    timed_out: bool = False
    stopped: bool = False
    duration_seconds: float = 0.0
    error: str = ""
    """Why the agent could not be started at all."""

    @property
    def over(self) -> bool:
        return self.state in (RunState.EXITED, RunState.LOST)


@dataclass(frozen=True)
class CheckResult:
    """One of the repository's own commands."""

    command: str
    exit_code: int
    tail: str
    seconds: float
    timed_out: bool = False
    changed: tuple[str, ...] = ()
    """Files of the checkout that are not as its commit has them, afterwards."""


@dataclass(frozen=True)
class Collected:
    """The work of a turn as a bundle inside the environment."""

    changed: bool
    tree: str | None
    subjects: tuple[str, ...]
    """Of the agent's own commits, newest first."""
    bundle: str | None
    size: int
    left_out: tuple[str, ...] = ()
    """Paths that git did not take into it."""
