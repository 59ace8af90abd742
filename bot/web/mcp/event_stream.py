"""Reads a stream of server-sent events, piece by piece, under a cap. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE = re.compile(rb"\r\n|\n|\r")


class EventReader:
    """Feed it what comes; it yields the data of each whole event. Its caller limits the bytes of the whole stream."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        """Pieces of a line that has not ended: a line may come byte by byte, and is searched once."""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        self._begun.append(chunk)
        if b"\n" not in chunk and b"\r" not in chunk and not self._begun[0].endswith(b"\r"):
            return
        text = b"".join(self._begun)
        held = text[-1:] == b"\r"  # it may be the first half of a line's end
        *lines, rest = _LINE.split(text[:-1] if held else text)
        self._begun = [rest + b"\r"] if held else [rest]
        for line in lines:
            name, _, value = line.partition(b":")
            if not line and self._data:
                yield b"\n".join(self._data)
                self._data = []
            elif name == b"data" and (value := value.removeprefix(b" ")):
                self._data.append(value)
