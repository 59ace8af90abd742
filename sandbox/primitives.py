"""The small protocol that every environment implements, and what a run in one reports.

Promises that the contract suite (tests/contract) checks on every implementation:
- every call has a time-out and raises only errors of `sandbox.errors`;
- a launched process outlives the client that launched it, and launching the same name again starts nothing;
- reads follow no link out of the environment and never block on what is not a regular file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from sandbox.runner.safe_files import FileStat


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
    """A finished short command; output beyond the cap is dropped and `truncated` says so."""

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
    """A machine that is paid for while it runs: how large it is, for how much, and in which run it is."""

    since: float  # when this run began, by the provider's clock: after a pause another one begins
    until: float  # when it ends by itself, unless it is prolonged
    cpus: float
    memory_gib: float
    cpu_usd: float  # a second of one CPU
    gib_usd: float  # a second of one GiB


class EnvironmentState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"


@dataclass(frozen=True)
class EnvironmentOverview:
    """An environment as its provider lists it, without touching it."""

    id: str
    kind: str  # e2b, local, or plain: processes without isolation
    state: EnvironmentState
    labels: Mapping[str, str]
    since: float  # when it was made, or came back from a pause, as far as the provider knows


class Liveness(StrEnum):
    """What the process table says of a launched name; how it ended is read from files."""

    ABSENT = "absent"  # never launched here
    RUNNING = "running"
    EXITED = "exited"


class EnvironmentPrimitives(Protocol):
    """One environment. Inside every process with `network=True` (and every launched one) the variable
    `FORGEHAND_GATEWAY` holds the base URL at which the host's gateway is reached, and HTTP(S)_PROXY/NO_PROXY point
    at the egress proxy. There is no other way out."""

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
        """A short command; at its time-out the whole tree is killed. Output is capped at 1 MiB a stream."""
        ...

    async def launch(
        self, name: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> None:
        """Start detached under a name `[a-z0-9-]+`; a name that was launched before is left alone."""
        ...

    async def liveness(self, name: str) -> Liveness: ...

    async def kill(self, name: str) -> None:
        """SIGKILL to the whole tree of a launched name, then verified gone; no-op when it is not running."""
        ...

    async def read(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        """Up to `limit` bytes from `offset` of a regular file, fewer only at its end; NotThere otherwise."""
        ...

    async def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Atomically (new file, rename); parents are made."""
        ...

    async def write_many(self, files: Mapping[str, bytes]) -> None: ...

    async def upload(self, source: Path, path: str) -> None: ...

    async def download(self, path: str, target: Path, *, max_bytes: int) -> int:
        """Stream a regular file to the host; TooLarge (and no target left) past the cap."""
        ...

    async def list(self, path: str) -> list[FileStat]: ...

    async def stat(self, path: str) -> FileStat | None:
        """None when there is no regular file or folder."""
        ...

    def watch(self, path: str, size: int) -> AsyncIterator[int]:
        """Yield the file's new size soon (goal: 50 ms) after it differs from the last one known; and yield at least
        every second even if nothing changed, so that the caller can look at liveness."""
        ...

    async def is_running(self) -> bool: ...
    async def extend(self, seconds: float) -> None: ...
    async def left(self) -> float | None:
        """Seconds that it may still run without a pause; None where nothing bounds that."""
        ...

    async def still(self) -> None:
        """SIGKILL to all that was ever started in it, then verified gone; its files stay."""
        ...

    async def pause(self) -> None: ...
    async def resume(self) -> None: ...
    async def metrics(self) -> EnvironmentMetrics: ...
    async def lease(self) -> Lease | None:
        """None while nothing is to be paid: it is paused, or runs on this host."""
        ...

    async def expose(self, port: int) -> str:
        """An address on the host that reaches a port inside."""
        ...

    async def terminate(self) -> None:
        """Kill everything and remove every trace; idempotent."""
        ...


@dataclass(frozen=True)
class EnvironmentSpec:
    """What to create. `labels` are found again by `EnvironmentProvider.find`."""

    labels: Mapping[str, str]
    public_repository: bool
    lifetime_seconds: float = 3600.0
    egress: tuple[str, ...] | None = ()
    """Hosts that this environment may reach beside those that all may; `*.` stands for any name below. None: nothing
    but the gateway, not even what all may reach."""
    template: str | None = None  # what it starts from, where there are templates; None: the operator's
    snapshot: str | None = None
    """What it starts from instead of a template; SnapshotGone where that is not there any more."""
    ahead: bool = False  # where several wait for room, before all that are not


class EnvironmentProvider(Protocol):
    """Creates and finds environments of one kind."""

    async def create(self, key: str, spec: EnvironmentSpec) -> EnvironmentPrimitives:
        """Find-or-create by an idempotency key `[a-z0-9-]+`."""
        ...

    async def find(self, labels: Mapping[str, str]) -> list[EnvironmentPrimitives]: ...

    async def overview(self, labels: Mapping[str, str]) -> list[EnvironmentOverview]:
        """As `find`, for people: in the order of their ids; nothing is woken or made ready for it."""
        ...

    async def attach(self, environment_id: str) -> EnvironmentPrimitives:
        """EnvironmentGone when it is not there."""
        ...

    async def rest(self, environment_id: str) -> None:
        """Nothing runs in it any more, and it costs as little as can be; its files stay, and `attach` finds it as ever.
        Safe to repeat. EnvironmentGone when it is not there."""
        ...

    async def leases(self, environment_id: str) -> list[Lease]:
        """What is paid for there or, where it is paused, was last; nothing is woken for it. Two where a lost answer has
        left two machines."""
        ...

    async def end(self, environment_id: str) -> None:
        """Gone for good, without being woken for it; that it is gone already is as good."""
        ...

    async def close(self) -> None:
        """Let go of the client; environments stay."""
        ...


class Witness(Protocol):
    """Told of each machine that a provider ends without having been asked to: nobody else would know of it."""

    async def ending(self, environment_id: str, lease: Lease) -> None:
        """It runs, or did last, and is ended next: not before this returns."""
        ...

    async def ended(self, environment_id: str, lease: Lease) -> None: ...


class Marks(Protocol):
    """The words that an environment may come back with from a rest, kept where they outlast us."""

    async def known(self, environment_id: str) -> frozenset[str]: ...
    async def add(self, environment_id: str, mark: str) -> None:
        """Before it is written inside: whoever dies in between leaves two that are good."""
        ...

    async def settle(self, environment_id: str, mark: str, instead_of: frozenset[str]) -> None:
        """It is inside, and the others are of older disks."""
        ...

    async def forget(self, environment_id: str) -> None: ...


class Snapshots(Protocol):
    """Disks of environments, kept to start others from; of providers that have such a thing."""

    async def take_snapshot(self, environment_id: str, name: str) -> str:
        """Of an environment in which no agent has run; what tells it from others is taken off first. The same name
        again gives one snapshot."""
        ...

    async def remove_snapshot(self, snapshot_id: str) -> None:
        """That it is gone already is as good."""
        ...


@dataclass(frozen=True)
class Chunk:
    """Whole lines of a run's output, in order."""

    lines: tuple[str, ...]  # valid JSON, perhaps shortened; "" stands for a line that could not be read
    next_offset: int  # bytes of the output that this chunk and all before it cover: follow again from here
    skipped: int = 0  # how many of the lines could not be read


class RunState(StrEnum):
    NOT_STARTED = "not_started"
    RUNNING = "running"
    EXITED = "exited"
    LOST = "lost"  # it ran, it is gone, and nothing says how it ended


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
    """One of the repository's own commands."""

    command: str
    exit_code: int
    tail: str
    seconds: float
    timed_out: bool = False
    changed: tuple[str, ...] = ()  # files of the checkout that are not as its commit has them, afterwards


@dataclass(frozen=True)
class Collected:
    """The work of a turn as a bundle inside the environment."""

    changed: bool
    tree: str | None
    subjects: tuple[str, ...]  # of the agent's own commits, newest first
    bundle: str | None
    size: int
    left_out: tuple[str, ...] = ()  # paths that git did not take into it
