"""Turns a change into suggestions at lines of another diff, as far as it can be told by such; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bot import diffs
from bot.diffs import FileDiff

MOST = 30
"""More is nothing to click through, one by one."""
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? ")
_NO_TEXT = ("new file", "deleted file", "old mode", "rename", "copy", "similarity", "GIT binary", "Binary files")


@dataclass(frozen=True)
class Suggested:
    """Lines that take the place of others, first to last, of the version that both diffs are about."""

    path: str
    first: int
    last: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass
class _Run:
    """Neighbouring lines that are changed, with a line that stays beside them."""

    first: int
    old: int = 0
    new: list[str] = field(default_factory=list)
    before: str | None = None
    after: str | None = None


def fitting(patch: str, shown: Mapping[str, FileDiff]) -> tuple[list[Suggested], int]:
    """Those that can stand at lines which `shown` shows, and how many changes there are in all."""
    found: list[Suggested] = []
    many = 0
    for part in diffs.parse(patch):
        changes = list(_changes(part))
        many += max(1, len(changes))
        place = shown.get(part.path) if part.path is not None else None
        if place is not None:
            found += [one for one in changes if one is not None and place.shows(one.first, one.last)]
    return (found, many) if len(found) <= MOST else ([], many)


def _changes(part: FileDiff) -> Iterator[Suggested | None]:
    """None for what cannot be told at lines of a file that stays."""
    lines = part.text.split("\n")
    head = next((at for at, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    if part.path is None or any(line.startswith(_NO_TEXT) for line in lines[:head]):
        yield None
        return
    last: Suggested | None = None
    for run in _runs(lines[head:]):
        one = _suggested(part.path, run)
        if last is not None and one is not None and one.first == last.last:  # both lean on the same line
            last = replace(last, lines=(*last.lines, *one.lines[1:]))
            continue
        if last is not None:
            yield last
        if one is None:
            yield None
        last = one
    if last is not None:
        yield last


def _runs(lines: Sequence[str]) -> Iterator[_Run | None]:
    """None for one at the end of a file that has no newline there: a suggestion cannot tell that."""
    run: _Run | None = None
    at, before, whole = 1, None, True
    for line in [*lines, ""]:
        hunk, sign = _HUNK.match(line), line[:1]
        if sign == "\\":
            whole = False
        elif run is not None and (hunk or sign not in ("-", "+")):
            run.after = line[1:] if sign == " " else None
            yield run if whole else None
            run, whole = None, True
        if hunk:
            at, before = int(hunk[1]) + (hunk[2] == "0"), None
        elif sign in ("-", "+"):
            run = run or _Run(at, before=before)
            run.old += sign == "-"
            run.new += [line[1:]] if sign == "+" else []
            at += sign == "-"
        elif sign == " ":
            at, before = at + 1, line[1:]


def _suggested(path: str, run: _Run | None) -> Suggested | None:
    """What is put in without taking anything away takes the place of its neighbour and of itself."""
    if run is None or any("\r" in line for line in run.new):
        return None
    if run.old:
        return Suggested(path, run.first, run.first + run.old - 1, tuple(run.new))
    if run.before is not None:
        return Suggested(path, run.first - 1, run.first - 1, (run.before, *run.new))
    if run.after is not None:
        return Suggested(path, run.first, run.first, (*run.new, run.after))
    return None
