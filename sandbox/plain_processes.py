"""Finds the processes of a plain environment by a mark in their environment variables, wherever they went (Linux)."""

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
    fields = family.fields_of(raw)
    ticks = int(fields[11]) + int(fields[12])
    return Stat(
        int(raw.split(" ", 1)[0]), fields[0], fields[19], ticks / os.sysconf("SC_CLK_TCK"), int(fields[21]) * PAGE
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
            variables = _environ(entry).split(b"\0")
            if any(one == wanted or one.startswith(wanted + b"/") for one in variables):
                found = stat_of(int(entry.name))
                if found and found.alive:
                    yield found


def _environ(entry: Path) -> bytes:
    """A process that becomes another program has memory, and no place for its variables yet: it is looked at again."""
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
    """The oldest first: who keeps others is not to see them die. False when some stay."""

    def find() -> list[int]:
        return [process.pid for process in sorted(marked(mark), key=lambda process: int(process.started))]

    return family.end(find, seconds)
