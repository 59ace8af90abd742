"""Defines the small protocol that every environment implements, and the reports of a run in one.

The contract suite (tests/contract) checks on every implementation:
- every call has a time-out and raises only errors of `sandbox.errors`;
- a launched process outlives the client that launched it, and a second launch of the same name does nothing;
- reads do not follow links out of the environment, and open only regular files, so they never block.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from sandbox.errors import SandboxError
from sandbox.runner.safe_files import FileStat

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def check_name(name: str) -> str:
    """Refuse a name that is unfit as a file name and as a part of a command line."""
    if not _NAME.fullmatch(name):
        raise SandboxError(f"{name[:80]!r} is not a name of [a-z0-9-], at most 63 long")
    return name


@dataclass(frozen=True)
class Layout:
    """Absolute paths as seen from inside the environment."""

    home: str
    work: str  # the checkout
    out: str  # files that the host reads: streams, exit codes, bundles
    runner: str  # folder of our standard-library scripts, read-only
    agent: str  # the agent's binary, read-only
    python: str
    git: str


@dataclass(frozen=True)
class ExecResult:
    """A finished short command. `truncated`: output beyond the cap was dropped."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    truncated: bool = False


@dataclass(frozen=True)
class EnvironmentMetrics:
    cpu_percent: float  # of one CPU: two busy ones are 200
    memory_bytes: int
    disk_bytes: int
    disk_files: int = 0
    disk_counted: bool = True  # False: there is more on the disk than could be counted in time


@dataclass(frozen=True)
class Lease:
    """A machine that costs money while it runs: its size, its prices, and its present run."""

    since: float  # when this run began, by the provider's clock; after a pause a new run begins
    until: float  # when it ends by itself, unless it is prolonged
    cpus: float
    memory_gib: float
    cpu_usd: float  # price of a second of one CPU
    gib_usd: float  # price of a second of one GiB


class EnvironmentState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"


@dataclass(frozen=True)
class EnvironmentOverview:
    """An environment as its provider lists it, without touching it."""

    id: str
    kind: str  # e2b, local or plain (processes without isolation)
    state: EnvironmentState
    labels: Mapping[str, str]
    since: float  # when it was made, or came back from a pause, as far as the provider knows


class Liveness(StrEnum):
    """State of a launched name by the process table; files say how it ended."""

    ABSENT = "absent"  # never launched here
    RUNNING = "running"
    EXITED = "exited"


class EnvironmentPrimitives(Protocol):
    """One environment. In every launched process and every one with `network=True`, `FORGEHAND_GATEWAY` holds the base
    URL of the host's gateway, and HTTP(S)_PROXY/NO_PROXY point at the egress proxy. There is no other way out."""

    @property
    def id(self) -> str: ...
    @property
    def layout(self) -> Layout: ...

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float = 60.0,
        network: bool = False,
    ) -> ExecResult:
        """Run a short command; at its time-out kill its whole tree. Output is capped at 1 MiB per stream."""

    async def launch(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> None:
        """Start detached under a name `[a-z0-9-]+`, unless that name was launched before."""

    async def liveness(self, name: str) -> Liveness: ...

    async def kill(self, name: str) -> None:
        """Send SIGKILL to the whole tree of a launched name and verify that it is gone; no-op if it is not running."""

    async def read(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        """Read up to `limit` bytes from `offset` of a regular file, fewer only at its end; NotThere otherwise."""

    async def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Write atomically (new file, rename) and make parents."""

    async def write_many(self, files: Mapping[str, bytes], *, executable: Collection[str] = ()) -> None: ...
    async def upload(self, source: Path, path: str) -> None: ...

    async def download(self, path: str, target: Path, *, max_bytes: int) -> int:
        """Stream a regular file to the host; TooLarge (and no target left) past the cap."""

    async def list(self, path: str) -> list[FileStat]: ...
    async def stat(self, path: str) -> FileStat | None: ...  # None: neither a regular file nor a folder

    def watch(self, path: str, size: int) -> AsyncGenerator[int, None]:
        """Yield the file's new size soon (goal: 50 ms) after it changes, and at least every second, so that the caller
        can check liveness."""

    async def is_running(self) -> bool: ...
    async def extend(self, seconds: float) -> None: ...
    async def left(self) -> float | None: ...  # seconds until it must pause; None: no limit
    async def still(self) -> None: ...  # SIGKILL to all processes, then verified gone; files stay
    async def pause(self) -> None: ...
    async def resume(self) -> None: ...
    async def metrics(self) -> EnvironmentMetrics: ...
    async def lease(self) -> Lease | None: ...  # None: paused, or on this host, so it costs nothing
    async def expose(self, port: int) -> str: ...  # an address on the host that reaches a port inside
    async def terminate(self) -> None: ...  # kills everything, removes every trace; safe to repeat


@dataclass(frozen=True)
class EnvironmentSpec:
    """An environment to create. `EnvironmentProvider.find` finds it by its `labels`."""

    labels: Mapping[str, str]
    public_repository: bool
    lifetime_seconds: float = 3600.0
    egress: tuple[str, ...] | None = ()
    """Hosts in addition to those that all may reach; `*.` stands for any name below. None: only the gateway."""
    template: str | None = None  # to start from; None: the operator's
    snapshot: str | None = None  # to start from instead of a template; SnapshotGone if it no longer exists
    ahead: bool = False  # it gets room before all that are not ahead


class EnvironmentProvider(Protocol):
    async def create(self, key: str, spec: EnvironmentSpec) -> EnvironmentPrimitives:
        """Find or create by an idempotency key `[a-z0-9-]+`."""

    async def find(self, labels: Mapping[str, str]) -> list[EnvironmentPrimitives]: ...

    async def overview(self, labels: Mapping[str, str]) -> list[EnvironmentOverview]:
        """List environments for people, in the order of their ids, without waking any."""

    async def attach(self, environment_id: str) -> EnvironmentPrimitives: ...  # or EnvironmentGone

    async def rest(self, environment_id: str) -> None:
        """End everything in it and make it as cheap as possible. Its files stay, and `attach` finds it again. Safe to
        repeat; EnvironmentGone if it does not exist."""

    async def leases(self, environment_id: str) -> list[Lease]:
        """Return the machine's present run or, if it is paused, its last one, without waking it. There are two if a
        lost answer left two machines."""

    async def end(self, environment_id: str) -> None: ...  # for good, without waking it; no error if it is gone
    async def close(self) -> None: ...  # closes the client; environments stay


class Witness(Protocol):
    """Learns of each machine that a provider ends on its own initiative, because nothing else records it."""

    async def ending(self, environment_id: str, lease: Lease) -> None:
        """Record the machine's run; the provider ends it only after this returns."""

    async def ended(self, environment_id: str, lease: Lease) -> None: ...


class Marks(Protocol):
    """Stores the marks with which an environment may return from a rest."""

    async def known(self, environment_id: str) -> frozenset[str]: ...
    async def add(self, environment_id: str, mark: str) -> None:
        """Store a mark before it is written inside; after a crash in between, the old and the new one are valid."""

    async def settle(self, environment_id: str, mark: str, instead_of: frozenset[str]) -> None:
        """Keep this mark, which is inside now; the others belong to older disks."""

    async def forget(self, environment_id: str) -> None: ...


class PlanPlaces(Protocol):
    """The places for running environments that an account's plan has. All who use the account stand in one line."""

    async def ask(self, key: str, most: int, spacing: float, *, ahead: bool) -> float | None:
        """Stand in line, and take a place if it is our turn and one is free. Return after how many seconds the
        environment may be created, so that creations are `spacing` seconds apart; None: ask again."""

    async def hold(self, key: str) -> None:
        """Count an environment that runs, even beyond the plan."""

    async def give(self, key: str) -> None:
        """Give the place back, or leave the line."""

    async def held(self) -> frozenset[str]:
        """Return the environments that count as running."""

    async def correct(self, before: AbstractSet[str], running: AbstractSet[str]) -> None:
        """Count what runs, as the provider says. Of those that do not run, drop only those that were held `before` it
        was asked."""


class Snapshots(Protocol):
    """Keeps disks of environments from which others start, for providers that can."""

    async def take_snapshot(self, environment_id: str, name: str) -> str:
        """Keep the disk of an environment in which no agent has run, after removing what identifies it. A repeated name
        gives the same snapshot."""

    async def remove_snapshot(self, snapshot_id: str) -> None: ...  # no error if it is gone already


@dataclass(frozen=True)
class Chunk:
    """Whole lines of a run's output, in order."""

    lines: tuple[str, ...]  # valid JSON, perhaps shortened; "" stands for an unreadable line
    next_offset: int  # the byte offset from which to follow on
    skipped: int = 0  # how many of the lines were unreadable


class RunState(StrEnum):
    NOT_STARTED = "not_started"
    RUNNING = "running"
    EXITED = "exited"
    LOST = "lost"  # it ran and is gone, and no file says how it ended


@dataclass(frozen=True)
class RunStatus:
    state: RunState
    exit_code: int | None = None
    timed_out: bool = False
    stopped: bool = False
    duration_seconds: float = 0.0
    error: str = ""  # why the agent could not be started at all

    @property
    def over(self) -> bool:
        return self.state in (RunState.EXITED, RunState.LOST)


@dataclass(frozen=True)
class CheckResult:
    command: str
    exit_code: int
    tail: str
    seconds: float
    timed_out: bool = False
    changed: tuple[str, ...] = ()  # files of the checkout that differ from its commit afterwards


@dataclass(frozen=True)
class Collected:
    """The work of a turn as a bundle inside the environment."""

    changed: bool
    tree: str | None
    subjects: tuple[str, ...]  # of the agent's own commits, newest first
    bundle: str | None
    size: int
    left_out: tuple[str, ...] = ()  # paths that git did not take into it
    inside: tuple[str, ...] = ()  # submodules whose files were changed, which stay behind
