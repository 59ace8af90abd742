"""One sandbox's machine: a bubblewrap box with its own processes and disk, frozen and killed as a whole."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2b_stand_in import disk, users
from tests.e2b_stand_in.link import GuestGone, Link

GUEST = Path(__file__).with_name("guest.py")
SSHD = Path(__file__).with_name("sshd.py")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FROM_HOST = ("/etc/ssl", "/etc/ca-certificates", "/etc/alternatives", "/etc/ld.so.cache", "/etc/resolv.conf")


class MachineDown(Exception):
    """It was killed or never came up."""


@dataclass(frozen=True)
class Bind:
    """A file or folder of the host at a place inside, read-only."""

    source: Path
    target: str


class Machine:
    """A running box. Its disk is `folder` and outlives it."""

    def __init__(self, folder: Path, binds: Sequence[Bind]) -> None:
        self._folder = folder
        self._binds = binds
        self._exits: dict[int, asyncio.Future[int]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._init = 0
        self.down = asyncio.Event()
        self.frozen = asyncio.Event()
        self.link: Link

    async def boot(self) -> None:
        await asyncio.to_thread(disk.lay_out, self._folder)
        ours, theirs = socket.socketpair()
        told, tell = os.pipe()
        with theirs, (self._folder / "box.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                "bwrap",
                *self._options(theirs.fileno(), tell),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(), tell, *_namespaces()),
            )
        os.close(tell)
        self.link = Link(ours, self._exited)
        with os.fdopen(told) as status:
            line = await asyncio.to_thread(status.readline)
        try:
            self._init = json.loads(line)["child-pid"]
            await self.link.ask("stat", path="/")
        except (ValueError, GuestGone) as error:
            await self.kill()
            said = (self._folder / "box.log").read_text(encoding="utf-8", errors="replace")[-500:]
            raise MachineDown(f"the box did not come up: {said}") from error

    def exit_of(self, pid: int) -> asyncio.Future[int]:
        """Becomes the status as subprocess tells it: a code, or minus a signal."""
        return self._exits.setdefault(pid, asyncio.get_running_loop().create_future())

    def pids(self) -> list[int]:
        """Of every process inside, as the host counts them."""
        found, open_ = [], [self._init] if self._init else []
        while open_:
            pid = open_.pop()
            found.append(pid)
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    with contextlib.suppress(OSError):
                        open_ += map(int, (task / "children").read_text(encoding="ascii").split())
        return found

    async def freeze(self) -> None:
        """Stops the tree from its root down, until nothing in it moves.

        One in state D comes back no further than to the stop that waits for it: it may wait for a child of its vfork
        that is stopped already, and so for ever.
        """
        self.frozen.set()
        while moving := [pid for pid in self.pids() if _state(pid) not in "DTtZX"]:
            _signal(moving, signal.SIGSTOP)
            await asyncio.sleep(0.001)

    def thaw(self) -> None:
        self.frozen.clear()
        _signal(self.pids()[::-1], signal.SIGCONT)

    async def kill(self) -> None:
        """Its first process takes all the others along."""
        self.down.set()
        if self._init:
            _signal([self._init], signal.SIGKILL)
        self.link.close()
        if self._process is not None:
            if not self._init:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
            await self._process.wait()
        for exit_ in self._exits.values():
            exit_.cancel()

    def _exited(self, pid: int, status: int) -> None:
        found = self.exit_of(pid)
        if not found.done():
            found.set_result(status)

    def _options(self, link: int, status: int) -> list[str]:
        options = [*_users(), "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        options += ["--hostname", "e2b.local", "--new-session", "--die-with-parent", "--json-status-fd", str(status)]
        options += ["--dir", "/home", "--dir", "/var"]
        options += ["--clearenv", "--proc", "/proc", "--dev", "/dev", "--ro-bind", "/usr", "/usr", "--tmpfs", "/run"]
        for name in ("bin", "sbin", "lib", "lib64"):
            if Path("/", name).exists():
                options += ["--symlink", f"usr/{name}", f"/{name}"]
        for name, target in disk.DISK.items():
            options += ["--bind", str(self._folder / name), target]
        for path in FROM_HOST:
            options += ["--ro-bind-try", path, path]
        options += ["--ro-bind", str(GUEST), "/run/guest.py", "--ro-bind", str(SSHD), "/run/sshd.py"]
        options += ["--perms", "1777", "--tmpfs", "/dev/shm"]
        for bind in self._binds:
            options += ["--ro-bind", str(bind.source), bind.target]
        options += ["--remount-ro", "/", "--chdir", "/"]
        return [*options, "--", "/usr/bin/python3", "-I", "-S", "/run/guest.py", str(link)]


def _users() -> list[str]:
    if users.are_two():
        return ["--userns", str(users.namespace())]
    return ["--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"]


def _namespaces() -> list[int]:
    return [users.namespace()] if users.are_two() else []


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "X"


def _signal(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
