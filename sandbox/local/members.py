"""The processes of one environment, told by the home folder that they see: true whoever started them, and when."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox.local import folders as at
from sandbox.runner import family

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Member:
    pid: int
    is_init: bool
    """The first process of its box: its death ends the box."""
    cpu_seconds: float
    memory_bytes: int


def members(home: Path) -> list[Member]:
    """All processes in boxes over this home folder."""
    try:
        about = home.stat()
    except OSError:
        return []
    return list(_members((about.st_dev, about.st_ino)))


def _members(identity: tuple[int, int]) -> Iterator[Member]:
    for entry in os.listdir("/proc"):  # noqa: PTH208 - names will do, and there may be thousands
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            # `root` is a box's own view; where we may not look, the process is not ours.
            seen = os.lstat(f"/proc/{entry}/root{at.HOME}")
            if (seen.st_dev, seen.st_ino) == identity:
                fields = family.stat_fields(int(entry))
                cpu = (int(fields[11]) + int(fields[12])) / _TICKS
                status = Path(f"/proc/{entry}/status").read_text(encoding="utf-8", errors="replace")
                is_init = re.search(r"^NSpid:.*\t1$", status, re.MULTILINE) is not None
                yield Member(int(entry), is_init, cpu, int(fields[21]) * _PAGE)


def namespace_of(pid: int) -> int:
    """The number of the process namespace that a living process is in."""
    return Path(f"/proc/{pid}/ns/pid").stat().st_ino


def freeze(home: Path) -> None:
    family.freeze(lambda: _commands(home))


def thaw(home: Path) -> None:
    family.send(_commands(home), signal.SIGCONT)


def are_frozen(home: Path) -> bool:
    return family.are_still(_commands(home))


def _commands(home: Path) -> list[int]:
    return [member.pid for member in members(home) if not member.is_init]


def kill_all(home: Path, seconds: float) -> bool:
    """The first processes of boxes first: with them the others end. False when some stay."""

    def find() -> list[int]:
        return [member.pid for member in sorted(members(home), key=lambda one: not one.is_init)]

    return family.end(find, seconds)
