"""Takes all that has come of a stream at a time: to pass a burst of small pieces on costs as much as to pass on one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

MOST_BYTES = 16 << 10
"""In hand of one stream; then its sender waits. Little, as a burst is paid for as a whole before it is passed on."""


class Bursts:
    """`async with Bursts(pieces) as bursts`, then `next` until it gives nothing."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._taken: list[bytes] = []
        self._size = 0
        self._moved = asyncio.Event()
        """Something came, or the stream ended."""
        self._room = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._reading = asyncio.create_task(self._read())
        self._reading.add_done_callback(lambda _: self._moved.set())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._reading.cancel()
        await asyncio.wait({self._reading})
        if not self._reading.cancelled():
            self._reading.exception()  # who leaves early does not want to know, and asyncio is not to complain

    async def next(self) -> bytes:
        """What has come since, at least a piece; nothing at the end. Raises what broke the stream, after its pieces."""
        await self._moved.wait()
        if not self._taken:
            self._reading.result()
            return b""
        burst, self._taken, self._size = b"".join(self._taken), [], 0
        self._room.set()
        if not self._reading.done():
            self._moved.clear()
        return burst

    async def _read(self) -> None:
        async for piece in self._pieces:
            if not piece:
                continue
            self._taken.append(piece)
            self._size += len(piece)
            self._moved.set()
            if self._size >= MOST_BYTES:
                self._room.clear()
                await self._room.wait()
