"""Notices the final lines in the agent's stream, and keeps its stderr under a cap."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import IO

from .processes import OutputTail

READ_SIZE = 1 << 18
LINE_CAP = 8 << 20
LOG_HEAD = 512 << 10
LOG_TAIL = 64 << 10


class FinalLines:
    """Reads the stream file as it grows, and notices lines of the final type."""

    def __init__(self, path: Path, final_type: str) -> None:
        self._file = path.open("rb")
        self._type = final_type
        self._parts: list[bytes] = []
        self._held = 0

    def seen(self) -> bool:
        found = False
        while data := self._file.read(READ_SIZE):
            *whole, rest = data.split(b"\n")
            for piece in whole:
                found = self._ends(piece) or found
            self._hold(rest)
        return found

    def close(self) -> None:
        self._file.close()

    def _ends(self, piece: bytes) -> bool:
        self._hold(piece)
        line = b"".join(self._parts)
        self._parts, self._held = [], 0
        if self._type.encode() not in line:
            return False
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            return False
        return isinstance(document, dict) and document.get("type") == self._type

    def _hold(self, piece: bytes) -> None:
        """Keep a piece of a line, unless the line is past the cap and so cannot be final."""
        if self._held < LINE_CAP:
            self._parts.append(piece)
        self._held += len(piece)


class CappedFile:
    """A file that gets the first part of the output and, at the end, the last."""

    def __init__(self, path: Path, head: int = LOG_HEAD, tail: int = LOG_TAIL) -> None:
        self._file = path.open("wb", buffering=0)
        self._left = head
        self._tail = OutputTail(tail)
        self._dropped = 0

    def add(self, data: bytes) -> None:
        head, rest = data[: self._left], data[self._left :]
        self._left -= len(head)
        self._write(head)
        if rest:
            self._dropped += len(rest)
            self._tail.add(rest)

    def close(self) -> None:
        if self._dropped > 0:
            tail = self._tail.text()
            self._write(b"\n[%d bytes left out]\n" % max(0, self._dropped - len(tail)) + tail)
        with contextlib.suppress(OSError):
            self._file.close()

    def _write(self, data: bytes) -> None:
        """Write to the log; a full disk must not stop the run."""
        with contextlib.suppress(OSError):
            self._file.write(data)


class CappedLog:
    """Drains a pipe into a capped file without ever blocking it."""

    def __init__(self, pipe: IO[bytes], path: Path) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._pipe = pipe
        self._file = CappedFile(path)
        self.open = True

    def fileno(self) -> int:
        return self._pipe.fileno()

    def drain(self) -> None:
        while self.open:
            try:
                data = os.read(self._pipe.fileno(), 65536)
            except BlockingIOError:
                return
            if not data:
                self.open = False
                return
            self._file.add(data)

    def close(self) -> None:
        self.drain()
        self._file.close()
        self._pipe.close()
