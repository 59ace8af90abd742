"""Finds the processes of a plain environment by a mark in their environment variables (Linux)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sandbox.runner import family

PROC = Path("/proc")
MARK = "FORGEHAND_PLAIN"
MEMORY_SIZE, ENVIRON_END = 20, 48  # places in `/proc/PID/stat`, counted from the one after the name
EXEC_SECONDS = 2.0
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Stat:
    """One process of the table. Its start time tells it from a later process with the same number."""

    pid: int
    state: str
    started: str
    seconds: float
    memory: int

    @property
    def alive(self) -> bool:
        return self.state not in ("Z", "X")


def parse_stat(raw: str) -> Stat:
    fields = family.fields_of(raw)
    ticks = int(fields[11]) + int(fields[12])
    seconds = ticks / os.sysconf("SC_CLK_TCK")
    return Stat(int(raw.split(" ", 1)[0]), fields[0], fields[19], seconds, int(fields[21]) * PAGE)


def stat_of(pid: int) -> Stat | None:
    try:
        return parse_stat((PROC / str(pid) / "stat").read_text(errors="replace"))
    except (OSError, ValueError, IndexError):
        return None


def marked(mark: str) -> Iterator[Stat]:
    """Yield the living processes whose mark is this one or is below it."""
    wanted = f"{MARK}={mark}".encode()
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            variables = _environ(entry).split(b"\0")
            if any(one == wanted or one.startswith(wanted + b"/") for one in variables):
                found = stat_of(int(entry.name))
                if found and found.alive:
                    yield found


def _environ(entry: Path) -> bytes:
    """Read the variables of a process. While it becomes another program it has none for a moment: look again."""
    deadline = time.monotonic() + EXEC_SECONDS
    while not (found := (entry / "environ").read_bytes()) and time.monotonic() < deadline:
        fields = family.stat_fields(int(entry.name))
        if fields[MEMORY_SIZE] == "0" or fields[ENVIRON_END] != "0":
            break
        time.sleep(0.001)
    return found


def freeze(mark: str) -> None:
    family.freeze(lambda: [process.pid for process in marked(mark)])


def thaw(mark: str) -> None:
    family.send((process.pid for process in marked(mark)), signal.SIGCONT)


def are_frozen(mark: str) -> bool:
    return family.are_still([process.pid for process in marked(mark)])


def kill_all(mark: str, seconds: float = 10.0) -> bool:
    """Kill the oldest first, so that no parent sees its children die. False if some stay."""
    return family.end(lambda: [one.pid for one in sorted(marked(mark), key=lambda one: int(one.started))], seconds)
