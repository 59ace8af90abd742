"""The processes that the agent leaves behind: they come to us as their nearest living ancestor, and are ended."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Linux only; elsewhere the process group has to do."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap(besides: int) -> None:
    """Collect ended orphans, but never the agent itself, whose exit code `Popen` wants to see."""
    with contextlib.suppress(ChildProcessError):
        while True:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None or found.si_pid == besides:
                return
            os.waitpid(found.si_pid, 0)


def end_all(seconds: float) -> None:
    """SIGKILL to every descendant, again until none is left: a tree that forks while it dies is followed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        left = list(_descendants(os.getpid()))
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        reap(besides=0)
        time.sleep(0.005)


def _descendants(ancestor: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    waiting = list(children.get(ancestor, ()))
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting.extend(children.get(pid, ()))


def _parents() -> Iterator[tuple[int, int]]:
    proc = Path("/proc")
    if not proc.is_dir():
        return
    for entry in proc.iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The command's name stands in brackets and may hold anything, brackets and spaces too.
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            yield int(entry.name), int(fields[1])
