"""Read a diff as text, hunk by hunk, and turn a change into suggestions at lines of another diff; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_NAMES = ("--- ", "+++ ", "rename from ", "rename to ", "copy from ", "copy to ")
_NO_TEXT = ("new file", "deleted file", "old mode", "rename", "copy", "similarity", "GIT binary", "Binary files")
_OLD_LINES = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? ")
MOST_SUGGESTIONS = 30
"""Nobody clicks through more, one by one."""


@dataclass(frozen=True)
class FileDiff:
    text: str
    names: tuple[str, ...]
    """Old and new name; only one unless it was renamed."""
    path: str | None
    """The path in the new version; None if it was deleted."""
    hunks: tuple[tuple[int, int], ...]
    """The first and last line of each hunk, in the new version."""

    def shows(self, first: int, last: int) -> bool:
        """Decide whether one hunk has all of these lines: only then can they be commented on together."""
        return any(start <= first <= last <= end for start, end in self.hunks)

    def shown_of(self, first: int, last: int) -> tuple[int, int] | None:
        """Return those of these lines that stand in one hunk: the one with the last line, else the first with any."""
        shown = [(max(first, start), min(last, end)) for start, end in self.hunks]
        found = [(start, end) for start, end in shown if start <= end]
        return next((one for one in found if one[1] == last), found[0] if found else None)


def parse(patch: str) -> list[FileDiff]:
    return [_file(lines) for lines in _split(patch)]


def of_file(path: str, patch: str) -> FileDiff:
    return FileDiff(patch, (path,), path, tuple(_hunks(patch.split("\n"))))


def _split(patch: str) -> Iterator[list[str]]:
    """Divide by file. A line inside a hunk never begins another file, whatever stands in it."""
    part: list[str] = []
    old = new = 0
    for line in patch.split("\n"):
        if (old > 0 or new > 0) and line[:1] in " +-\\":
            old, new = old - (line[:1] in (" ", "-")), new - (line[:1] in (" ", "+"))
        elif hunk := _HUNK.match(line):
            old, new = int(hunk[1] or 1), int(hunk[3] or 1)
        elif line.startswith("diff --git "):
            if part:
                yield part
            part, old, new = [], 0, 0
        if part or line.startswith("diff --git "):
            part.append(line)
    if part:
        yield part


def _file(lines: list[str]) -> FileDiff:
    head = next((at for at, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    names: list[str] = []
    path: str | None = None
    for line in lines[1:head]:
        if (sign := next((one for one in _NAMES if line.startswith(one)), None)) is None:
            continue
        name = line.removeprefix(sign).rstrip("\t")
        found = None if name == "/dev/null" else _unquoted(name)
        if found is not None:
            found = found[2:] if sign in ("--- ", "+++ ") else found
            names.append(found)
        path = found if sign in ("+++ ", "rename to ", "copy to ") else path
    names = names or _from_head(lines[0])
    return FileDiff("\n".join(lines), tuple(dict.fromkeys(names)), path, tuple(_hunks(lines[head:])))


def _hunks(lines: list[str]) -> Iterator[tuple[int, int]]:
    old = new = 0
    for line in lines:
        if old > 0 or new > 0:
            old, new = old - (line[:1] in (" ", "-")), new - (line[:1] in (" ", "+"))
        elif hunk := _HUNK.match(line):
            old, first, new = int(hunk[1] or 1), int(hunk[2]), int(hunk[3] or 1)
            if new:
                yield first, first + new - 1


def _from_head(line: str) -> list[str]:
    """Read the name of a file without hunks, which stands there twice."""
    rest = line.removeprefix("diff --git ")
    if rest.startswith('"'):
        return [_unquoted(rest[: rest.find('" ') + 1])[2:]]
    half = (len(rest) - 1) // 2
    return [rest[2:half]] if rest[:half][2:] == rest[half + 1 :][2:] else []


def _unquoted(text: str) -> str:
    if len(text) < 2 or not (text.startswith('"') and text.endswith('"')):
        return text
    raw = text[1:-1].encode("utf-8", "replace")
    return _ESCAPE.sub(_letter, raw).decode("utf-8", "replace")


def _letter(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _LETTERS.get(code, code)


@dataclass(frozen=True)
class Suggested:
    """Lines that replace lines `first` to `last` of the version that both diffs are about."""

    path: str
    first: int
    last: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass
class _Run:
    """Neighbouring changed lines, with an unchanged line beside them."""

    first: int
    old: int = 0
    new: list[str] = field(default_factory=list)
    before: str | None = None
    after: str | None = None


def suggestions_for(patch: str, shown: Mapping[str, FileDiff]) -> tuple[list[Suggested], int]:
    """Return the changes that fit on lines which `shown` shows, and the number of all changes."""
    found: list[Suggested] = []
    many = 0
    for part in parse(patch):
        changes = list(_changes(part))
        many += max(1, len(changes))
        place = shown.get(part.path) if part.path is not None else None
        if place is not None:
            found += [one for one in changes if one is not None and place.shows(one.first, one.last)]
    return (found, many) if len(found) <= MOST_SUGGESTIONS else ([], many)


def _changes(part: FileDiff) -> Iterator[Suggested | None]:
    """Yield each change, or None if no lines of a remaining file can express it."""
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
    """Yield each run, or None at the end of a file without a newline: a suggestion cannot express that."""
    run: _Run | None = None
    at, before, whole = 1, None, True
    for line in [*lines, ""]:
        hunk, sign = _OLD_LINES.match(line), line[:1]
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
    """Turn a run into a suggestion: an insertion replaces its neighbour by itself and the neighbour."""
    if run is None or any("\r" in line for line in run.new):
        return None
    if run.old:
        return Suggested(path, run.first, run.first + run.old - 1, tuple(run.new))
    if run.before is not None:
        return Suggested(path, run.first - 1, run.first - 1, (run.before, *run.new))
    if run.after is not None:
        return Suggested(path, run.first, run.first, (*run.new, run.after))
    return None
