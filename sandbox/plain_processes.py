"""Finds the processes of a plain environment by a mark in their environment variables, wherever they went (Linux)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
MARK = "FORGEHAND_PLAIN"
STILL = ("T", "t", "D", "Z", "X")
"""States in which a process that has its SIGSTOP does nothing."""
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Stat:
    """What `/proc/PID/stat` says; the start time tells a process from a later one of the same number."""

    pid: int
    state: str
    started: str
    seconds: float
    memory: int

    @property
    def alive(self) -> bool:
        return self.state not in ("Z", "X")


def parse_stat(raw: str) -> Stat:
    before, _, after = raw.rpartition(")")
    fields = after.split()
    ticks = int(fields[11]) + int(fields[12])
    return Stat(
        int(before.split(" ", 1)[0]), fields[0], fields[19], ticks / os.sysconf("SC_CLK_TCK"), int(fields[21]) * PAGE
    )


def stat_of(pid: int) -> Stat | None:
    try:
        return parse_stat((PROC / str(pid) / "stat").read_text(errors="replace"))
    except (OSError, ValueError, IndexError):
        return None


def marked(mark: str) -> Iterator[Stat]:
    """All living processes that carry the mark or one that it begins."""
    wanted = f"{MARK}={mark}".encode()
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            variables = (entry / "environ").read_bytes().split(b"\0")
            if any(one == wanted or one.startswith(wanted + b"/") for one in variables):
                found = stat_of(int(entry.name))
                if found and found.alive:
                    yield found


def send_all(mark: str, sign: int) -> int:
    """To every process that carries the mark; the number of them."""
    count = 0
    for process in marked(mark):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, sign)
            count += 1
    return count


def freeze(mark: str, seconds: float = 5.0) -> None:
    """SIGSTOP until none is moving: one that was being forked meanwhile too. Who waits for a child of its vfork (state
    D) moves no further than to the stop that waits for it."""
    deadline = time.monotonic() + seconds
    while any(process.state not in STILL for process in marked(mark)) and time.monotonic() < deadline:
        send_all(mark, signal.SIGSTOP)
        time.sleep(0.002)


def kill_all(mark: str, seconds: float = 10.0) -> bool:
    """SIGKILL until none is left; False when some will not go."""
    deadline = time.monotonic() + seconds
    while send_all(mark, signal.SIGKILL):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
