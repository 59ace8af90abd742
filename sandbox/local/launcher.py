"""Builds the arguments of a bubblewrap box, and starts it attached or detached."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import resource
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from sandbox import blocked
from sandbox.errors import EnvironmentBusy, NotThere, SandboxError
from sandbox.files import PIPE_BLOCK, Capped, feed
from sandbox.local import folders as at
from sandbox.local.folders import Folders, namespace_of
from sandbox.local.tools import Furniture
from sandbox.primitives import ExecResult
from sandbox.runner.family import wait_dead

SHARED_MEMORY_BYTES = 1 << 30
SHARED_BY = 8
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class BoxLimits:
    """Limits of one process (files, memory) or of one environment (processes)."""

    processes: int = 1024
    file_bytes: int = 2 << 30
    open_files: int = 4096
    data_bytes: int = 16 << 30


@dataclass(frozen=True)
class Box:
    folders: Folders
    furniture: Furniture
    env: Mapping[str, str]
    cwd: str
    sockets: str | None  # the host's folder of sockets, for a box with a way out
    dies_with_parent: bool
    own: str | None = None  # the host's folder of sockets for this environment alone


def prefix(uid: int | None, limits: BoxLimits, ceilings: Mapping[str, int]) -> list[str]:
    """Build the command that starts bubblewrap: it sets limits and, from root, steps down to a user. As root, a box
    would isolate nothing, because the kernel lets the global uid 0 write sysctls from any namespace."""
    wanted = {
        # Counted per user: all boxes of an ordinary user share one number with everything else that user runs.
        "nproc": limits.processes if uid is not None else limits.processes * SHARED_BY,
        "fsize": limits.file_bytes,
        "nofile": limits.open_files,
        "data": limits.data_bytes,
        "core": 0,
    }
    capped = {name: min(value, ceilings.get(name, value)) for name, value in wanted.items()}
    steps = ["choom", "-n", "500", "--", "prlimit", *(f"--{name}={value}" for name, value in capped.items()), "--"]
    if uid is not None:
        steps += ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]
        steps += ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]
    return steps


def arguments(box: Box, *, seccomp_fd: int, status_fd: int) -> list[str]:
    """Build bubblewrap's options. They go over a descriptor, because its command line is visible inside."""
    options = ["--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000"]
    options += ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"]
    options += ["--hostname", "forgehand", "--new-session", "--cap-drop", "ALL"]
    options += ["--seccomp", str(seccomp_fd), "--json-status-fd", str(status_fd)]
    options += ["--die-with-parent"] if box.dies_with_parent else []
    # We make the folders, because bubblewrap makes missing parents 0700.
    inside = [path for _, path in box.furniture.read_only]
    inside += [at.HOME, at.OUT, at.SOCKETS, at.OWN, at.RUNNER, "/var/tmp"]  # noqa: S108
    made = {str(parent) for path in inside for parent in PurePosixPath(path).parents} - {"/", "/usr"}
    for folder in sorted(made):
        options += ["--perms", "0755", "--dir", folder]
    options += [*_bound(box), "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", box.cwd, *_environment(box)]
    if any("\0" in option for option in options):
        # The list is cut at NUL bytes: one in a value would let its author add options.
        raise SandboxError("a NUL byte in an environment variable or a path")
    return options


def encoded(options: Sequence[str]) -> bytes:
    return b"".join(option.encode("utf-8", "surrogateescape") + b"\0" for option in options)


def _bound(box: Box) -> list[str]:
    size = str(SHARED_MEMORY_BYTES)
    options = ["--proc", "/proc", "--dev", "/dev"]
    options += ["--perms", "1777", "--size", size, "--tmpfs", "/dev/shm"]  # noqa: S108
    options += ["--perms", "1777", "--size", size, "--tmpfs", "/var/tmp"]  # noqa: S108
    for source, target in box.furniture.read_only:
        options += ["--ro-bind", source, target]
    for source, target in box.furniture.links:
        options += ["--symlink", source, target]
    # Last, so that bubblewrap never looks for a mount point in a folder where the agent may have put a link.
    options += ["--bind", str(box.folders.temporary), at.TEMPORARY]
    options += ["--bind", str(box.folders.home), at.HOME]
    options += ["--bind", str(box.folders.work), at.WORK]
    options += ["--bind", str(box.folders.out), at.OUT]
    options += ["--ro-bind", str(box.folders.runner), at.RUNNER]
    if box.sockets is not None:
        # Bind the folder, not its sockets: a restarted host makes new ones, which are then visible too.
        options += ["--ro-bind", box.sockets, at.SOCKETS]
    if box.own is not None:
        options += ["--ro-bind", box.own, at.OWN]
    return options


def _environment(box: Box) -> list[str]:
    own = {"HOME": at.HOME, "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/sh", "PATH": box.furniture.path}
    options = ["--clearenv"]
    for name, value in {**own, "LANG": "C.UTF-8", "TMPDIR": at.TEMPORARY, **box.env}.items():
        if not _NAME.fullmatch(name):
            raise SandboxError(f"{name[:40]!r} is not a name for an environment variable")
        options += ["--setenv", name, value]
    return options


def forwarded(box: Box, command: Sequence[str], *, name: str | None = None) -> list[str]:
    """Put a command behind the forwarder; a launched one, which has a name, gets a log and a socket for the host."""
    egress = at.SOCKETS if box.own is None else at.OWN
    found = [box.furniture.python, "-I", "-S", f"{at.RUNNER}/forwarder.py"]
    found += ["--gateway", f"{at.SOCKETS}/{at.GATEWAY_SOCKET}", "--egress", f"{egress}/{at.EGRESS_SOCKET}"]
    found += ["--denied", f"{at.OUT}/{blocked.LOG}"]
    if name is not None:
        found += ["--log", f"{at.OUT}/launch-{name}.log", "--expose", f"{at.OUT}/{exposure(name)}"]
    return [*found, "--", *command]


def exposure(name: str) -> str:
    """Name the socket in `out` through which the host reaches a launched command's ports."""
    return f".expose-{name}.sock"


READY_SECONDS = 30.0
KILL_SECONDS = 10.0

# The first process of a box is bubblewrap itself, and processes inside can read its environment.
CLEAN = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8"}


@dataclass(frozen=True)
class Launcher:
    uid: int | None  # the user to step down to; None when we are an ordinary user already
    limits: BoxLimits
    seccomp: bytes

    @contextmanager
    def _command(self, box: Box, command: Sequence[str], status_fd: int) -> Iterator[tuple[list[str], tuple[int, ...]]]:
        """Yield the whole argument list and the descriptors that it names."""
        with _memory("seccomp", self.seccomp) as seccomp_fd:
            options = arguments(box, seccomp_fd=seccomp_fd, status_fd=status_fd)
            with _memory("args", encoded(options)) as args_fd:
                steps = prefix(self.uid, self.limits, _ceilings())
                yield [*steps, "bwrap", "--args", str(args_fd), "--", *command], (seccomp_fd, args_fd, status_fd)

    async def run(self, box: Box, command: Sequence[str], *, stdin: bytes, timeout: float) -> ExecResult:
        """Run a command until its end or its time-out; no process of it is left in either case."""
        with _memory("status", b"") as status_fd:
            with self._command(box, command, status_fd) as (argv, descriptors):
                try:
                    process = await asyncio.create_subprocess_exec(
                        *argv,
                        env=CLEAN,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        pass_fds=descriptors,
                        start_new_session=True,
                        cwd="/",
                    )
                except (OSError, ValueError) as error:
                    raise EnvironmentBusy(f"a box could not be started: {error.__class__.__name__}") from None
            try:
                return await _finish(process, stdin, timeout, status_fd)
            finally:
                await _end(process, status_fd)

    def spawn(self, box: Box, command: Sequence[str], status_fd: int) -> None:
        """Start a command and block until it says "ready" on a pipe; raise bubblewrap's words if there is no box.

        `setsid --fork` gives the box a separate session and the system's init as parent. So it does not die with us and
        does not stay as our zombie.
        """
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb", buffering=0) as answer:
            try:
                with self._command(box, command, status_fd) as (argv, descriptors):
                    subprocess.run(
                        ["setsid", "--fork", *argv],
                        env=CLEAN,
                        stdin=subprocess.DEVNULL,
                        stdout=writing,
                        stderr=writing,
                        pass_fds=descriptors,
                        timeout=READY_SECONDS,
                        check=False,
                        cwd="/",
                    )
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                raise EnvironmentBusy(f"a box could not be started: {type(error).__name__}") from None
            finally:
                os.close(writing)
            said = _read_until_ready(answer.fileno())
        if said is not None:
            raise failure(said)


def _read_until_ready(descriptor: int) -> bytes | None:
    """Return None if the command was started, else the words that came instead."""
    said, deadline = b"", time.monotonic() + READY_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([descriptor], [], [], left)
        data = os.read(descriptor, 4096) if ready else b""
        said += data
        if said.endswith(b"ready\n"):
            return None
        if not data or len(said) > PIPE_BLOCK:
            break
    return said or b"no answer"


async def _finish(process: asyncio.subprocess.Process, stdin: bytes, timeout: float, status_fd: int) -> ExecResult:
    feeding = asyncio.create_task(feed(process, stdin))
    out, err = Capped(), Capped()
    timed_out = False
    try:
        async with asyncio.timeout(timeout):
            await asyncio.gather(out.take(process.stdout), err.take(process.stderr))
            await process.wait()
    except TimeoutError:
        timed_out = True
        await _end(process, status_fd)
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
    code = 124 if timed_out else BoxStatus.read(status_fd).exit_code
    if code is None:
        if b"bwrap: execvp " not in err.data:
            raise failure(err.data)
        code = 127  # there was a box, but no such command in it
    return ExecResult(code, bytes(out.data), bytes(err.data), timed_out, out.truncated or err.truncated)


async def _end(process: asyncio.subprocess.Process, status_fd: int) -> None:
    """Kill what is left of the box and wait: when its inner init dies, the kernel ends the whole namespace."""
    status = BoxStatus.read(status_fd)
    if status.init is not None:
        with contextlib.suppress(OSError):
            pidfd = os.pidfd_open(status.init)
            try:
                if namespace_of(status.init) == status.namespace:
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                    await asyncio.to_thread(wait_dead, pidfd, KILL_SECONDS)
            finally:
                os.close(pidfd)
    # This also closes pipes that were not read to their end (wait() would wait for them) and kills the outer process;
    # then --die-with-parent ends a box whose init was not known yet.
    process._transport.close()  # type: ignore[attr-defined]
    await process.wait()


@dataclass(frozen=True)
class BoxStatus:
    """Bubblewrap's report: lines of JSON on its status descriptor."""

    init: int | None = None  # the process id of the box's first process, as we see it
    namespace: int | None = None
    exit_code: int | None = None

    @classmethod
    def read(cls, descriptor: int) -> BoxStatus:
        """Read the report. The first value of a key counts: bubblewrap wrote it before anything ran inside."""
        found: dict[str, int] = {}
        for line in os.pread(descriptor, PIPE_BLOCK, 0).splitlines():
            with contextlib.suppress(ValueError):  # a line that is being written
                found = {**json.loads(line), **found}
        return cls(found.get("child-pid"), found.get("pid-namespace"), found.get("exit-code"))


def failure(said: bytes | bytearray) -> SandboxError:
    """Turn bubblewrap's last words into one of our errors."""
    text = bytes(said[-2000:]).decode("utf-8", "replace").strip()
    last = text.splitlines()[-1] if text else "no reason was given"
    if "Can't chdir" in last:
        return NotThere(f"the working folder is not there ({last})")
    return EnvironmentBusy(f"a box could not be started: {last}")


@contextmanager
def _memory(name: str, data: bytes) -> Iterator[int]:
    descriptor = os.memfd_create(name)
    try:
        if data:
            os.pwrite(descriptor, data, 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _ceilings() -> dict[str, int]:
    """Return our own hard limits; only root with another capability could exceed them."""
    names = ("nproc", "fsize", "nofile", "data")
    hard = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1] for name in names}
    return {name: value for name, value in hard.items() if value != resource.RLIM_INFINITY}
