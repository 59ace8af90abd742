"""Launches commands under a name: starts them once, finds them again from another process, kills them as a whole."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from sandbox.errors import EnvironmentBusy, EnvironmentGone
from sandbox.local.folders import namespace_of
from sandbox.local.launcher import Box, BoxStatus, Launcher
from sandbox.primitives import Liveness
from sandbox.runner.family import stat_fields, wait_dead

KILL_SECONDS = 10.0
LAUNCH_SECONDS = 40.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Identity:
    """Identity of a box's first process; its number alone may belong to another process by now."""

    pid: int
    started: int  # ticks since boot
    boot: str


@dataclass(frozen=True)
class Launched:
    """A launched name. `NAME.status` is bubblewrap's status file, locked while the box starts or runs."""

    folder: Path
    name: str

    def start(self, launcher: Launcher, box: Box, command: list[str]) -> None:
        """Start a command and block until it runs; do nothing if any process launched the name before."""
        with self._open(os.O_RDWR | os.O_CREAT | os.O_APPEND) as status_fd:
            if not self._claim(status_fd):
                return
            try:
                launcher.spawn(box, command, status_fd)
            except BaseException:
                with self._init(BoxStatus.read(status_fd)) as pidfd:
                    if pidfd is not None:
                        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                        wait_dead(pidfd, KILL_SECONDS)
                (self.folder / f"{self.name}.status").unlink(missing_ok=True)
                raise
            self._remember(BoxStatus.read(status_fd))

    def liveness(self) -> Liveness:
        try:
            with self._open(os.O_RDONLY) as status_fd:
                status = BoxStatus.read(status_fd)
                if status.init is None:
                    return Liveness.RUNNING if _is_locked(status_fd) else Liveness.ABSENT
        except FileNotFoundError:
            return Liveness.ABSENT
        if status.exit_code is not None:
            # The command has ended; the processes that it left in its box must not live on.
            self.kill()
            return Liveness.EXITED
        with self._init(status) as pidfd:
            return Liveness.EXITED if pidfd is None else Liveness.RUNNING

    def kill(self) -> None:
        """Kill the box's first process: the kernel then ends the whole namespace, and that process last."""
        try:
            with self._open(os.O_RDONLY) as status_fd:
                status = BoxStatus.read(status_fd)
        except FileNotFoundError:
            return
        with self._init(status) as pidfd:
            if pidfd is None:
                return
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            if not wait_dead(pidfd, KILL_SECONDS):
                raise EnvironmentBusy(f"{self.name} could not be killed within {KILL_SECONDS:.0f} s")

    def _claim(self, status_fd: int) -> bool:
        """Return True if it is ours to start. An empty unlocked file is left by a process that died too early."""
        deadline = time.monotonic() + LAUNCH_SECONDS
        while BoxStatus.read(status_fd).init is None:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(status_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(status_fd).st_nlink == 0:
                    raise EnvironmentBusy(f"{self.name} could not be launched: another attempt failed just now")
                return BoxStatus.read(status_fd).init is None
            if time.monotonic() > deadline:
                raise EnvironmentBusy(f"{self.name} is being launched by another process and does not get ready")
            time.sleep(_POLL_SECONDS)
        return False

    @contextlib.contextmanager
    def _open(self, flags: int) -> Iterator[int]:
        if not self.folder.is_dir():
            raise EnvironmentGone("the environment is not there any more")
        descriptor = os.open(self.folder / f"{self.name}.status", flags | os.O_CLOEXEC, 0o600)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _remember(self, status: BoxStatus) -> None:
        """Store the identity. If we die before this, the namespace's number alone identifies the process."""
        if status.init is None:
            return
        with contextlib.suppress(OSError, IndexError, ValueError):  # it has ended already
            found = Identity(status.init, _started(status.init), _boot())
            partial = self.folder / f"{self.name}.json.new"
            partial.write_text(json.dumps(asdict(found)), encoding="utf-8")
            partial.replace(self.folder / f"{self.name}.json")

    @contextlib.contextmanager
    def _init(self, status: BoxStatus) -> Iterator[int | None]:
        """Yield a handle on the box's first process, or None if it is dead or another process has its number."""
        pidfd = _open_process(status.init) if status.init is not None else None
        if pidfd is None or status.init is None:
            yield None
            return
        try:
            alive = self._is_ours(status.init, status) and not wait_dead(pidfd, 0)
            yield pidfd if alive else None
        finally:
            os.close(pidfd)

    def _is_ours(self, pid: int, status: BoxStatus) -> bool:
        try:
            kept = Identity(**json.loads((self.folder / f"{self.name}.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            kept = None
        try:
            if kept is not None:
                return kept == Identity(pid, _started(pid), _boot())
            return status.namespace is not None and namespace_of(pid) == status.namespace
        except (OSError, IndexError, ValueError):
            return False


def _open_process(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno in (errno.ESRCH, errno.EINVAL):
            return None
        raise EnvironmentBusy(f"a process could not be looked at: {error.strerror}") from None


def _started(pid: int) -> int:
    return int(stat_fields(pid)[19])


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False
