"""The process table: who lives, who descends from whom, and the end of a whole tree."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
DEAD = ("Z", "X")


def adopt_orphans() -> None:
    """Whatever our children leave behind comes to us, not to init: a tree cannot slip away by a double fork."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def climb_no_more() -> None:
    """From here on no program makes its user another one, whatever bits and capabilities its file has."""
    import ctypes

    if ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError("a command could not be kept from becoming root")


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def born(pid: int) -> str | None:
    """Tells a process from a later one of the same number; None when there is none (or only its remains)."""
    fields = _fields(pid)
    return None if fields is None or fields[0] in DEAD else fields[19]


def _fields(pid: int) -> list[str] | None:
    try:
        # The command's name stands in brackets and may hold anything, brackets and spaces too.
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode("ascii").split()
    except (OSError, ValueError):
        return None


def descendants(ancestor: int) -> Iterator[int]:
    """Those that live."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        fields = _fields(int(entry.name)) if entry.name.isdigit() else None
        if fields is not None and fields[0] not in DEAD:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    waiting = list(children.get(ancestor, ()))
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting.extend(children.get(pid, ()))


def end_descendants(ancestor: int, seconds: float) -> bool:
    """SIGKILL until none is left: a tree that forks while it dies is followed. Remains are the ancestor's to reap."""
    deadline = time.monotonic() + seconds
    while left := list(descendants(ancestor)):
        if time.monotonic() > deadline:
            return False
        for pid in left:
            send(pid, signal.SIGKILL)
        if ancestor == os.getpid():
            reap()
        time.sleep(0.005)
    return True


def end_all_of(user: int, seconds: float) -> bool:
    """SIGKILL until that user has no process left."""
    deadline = time.monotonic() + seconds
    while left := list(_all_of(user)):
        if time.monotonic() > deadline:
            return False
        for pid in left:
            send(pid, signal.SIGKILL)
        time.sleep(0.005)
    return True


def _all_of(user: int) -> Iterator[int]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and born(int(entry.name)) is not None:
            with contextlib.suppress(OSError):
                if entry.stat().st_uid == user:
                    yield int(entry.name)


def reap() -> dict[int, int]:
    """The children that have ended, with their wait status."""
    found: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            found[pid] = status
    return found


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def exit_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
