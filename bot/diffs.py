"""Reads a diff as text: which lines of the new files it shows, hunk by hunk, and which files it is about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_NAMES = ("--- ", "+++ ", "rename from ", "rename to ", "copy from ", "copy to ")


@dataclass(frozen=True)
class FileDiff:
    """One file's part."""

    text: str
    names: tuple[str, ...]
    """Old and new; both are the same unless it was renamed."""
    path: str | None
    """In the new version; None where it was deleted."""
    hunks: tuple[tuple[int, int], ...]
    """First and last line of each, in the new version."""

    def shows(self, first: int, last: int) -> bool:
        """Whether all of these lines stand in one hunk: only there can they be commented on together."""
        return any(start <= first <= last <= end for start, end in self.hunks)

    def shown_of(self, first: int, last: int) -> tuple[int, int] | None:
        """Those of these lines that stand in one hunk: in the one that shows the last, else in the first that shows
        any."""
        shown = [(max(first, start), min(last, end)) for start, end in self.hunks]
        found = [(start, end) for start, end in shown if start <= end]
        return next((one for one in found if one[1] == last), found[0] if found else None)


def parse(patch: str) -> list[FileDiff]:
    """In its order; what stands before the first file is skipped."""
    return [_file(lines) for lines in _split(patch)]


def of_file(path: str, patch: str) -> FileDiff:
    """From the hunks alone, as GitHub tells them."""
    return FileDiff(patch, (path,), path, tuple(_hunks(patch.split("\n"))))


def _split(patch: str) -> Iterator[list[str]]:
    """By file. A line inside a hunk never begins another one, whatever stands in it."""
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
        found = _name(line.removeprefix(sign), prefixed=sign in ("--- ", "+++ "))
        names += [found] if found is not None else []
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


def _name(text: str, *, prefixed: bool) -> str | None:
    text = text.rstrip("\t")
    if text == "/dev/null":
        return None
    name = _unquoted(text)
    return name[2:] if prefixed else name


def _from_head(line: str) -> list[str]:
    """Of a file without hunks, whose name stands there twice."""
    rest = line.removeprefix("diff --git ")
    if rest.startswith('"'):
        return [_unquoted(rest[: rest.find('" ') + 1])[2:]]
    half = (len(rest) - 1) // 2
    return [rest[2:half]] if rest[:half][2:] == rest[half + 1 :][2:] else []


def _unquoted(text: str) -> str:
    """As git writes names with unusual characters."""
    if len(text) < 2 or not (text.startswith('"') and text.endswith('"')):
        return text
    raw = text[1:-1].encode("utf-8", "replace")
    return _ESCAPE.sub(_letter, raw).decode("utf-8", "replace")


def _letter(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _LETTERS.get(code, code)
