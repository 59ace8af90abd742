"""Cuts a growing byte stream into whole lines, each with the offset behind it, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

LINE_CAP = 32 << 20


@dataclass(frozen=True)
class RawLine:
    data: bytes | None
    """None: longer than the cap, left out."""
    end: int
    """Offset of the first byte behind the line and its newline."""


class LineCutter:
    """Pieces of an unfinished line are kept in a list and joined once: `rest + chunk` is quadratic on long lines."""

    def __init__(self, offset: int, cap: int | None = None) -> None:
        self._cap = LINE_CAP if cap is None else cap
        self._pieces: list[bytes] = []
        self._held = 0
        self.offset = offset
        """Of the next byte that is wanted."""

    def feed(self, data: bytes) -> list[RawLine]:
        found: list[RawLine] = []
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._hold(piece)
            self.offset += 1
            found.append(self._take())
        self._hold(rest)
        return found

    def finish(self) -> list[RawLine]:
        """The last line, when it has no newline and none will come."""
        return [self._take()] if self._held else []

    def _hold(self, piece: bytes) -> None:
        self.offset += len(piece)
        self._held += len(piece)
        if self._held <= self._cap:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def _take(self) -> RawLine:
        data = b"".join(self._pieces) if self._held <= self._cap else None
        self._pieces, self._held = [], 0
        return RawLine(data, self.offset)
