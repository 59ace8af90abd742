"""One source of events and many readers, as envd does it: each waits for the slowest, and nobody means thrown away."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

Event = dict[str, Any]


class Reader:
    """One subscription; None ends it."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue(maxsize=1)
        self._gone = asyncio.Event()
        self.stuck = False
        """It takes nothing more and is not known to be gone: a half-dead connection."""

    @property
    def gone(self) -> bool:
        return self._gone.is_set()

    def leave(self) -> None:
        if not self.stuck:
            self._gone.set()

    async def next(self) -> Event | None:
        if self.stuck:
            await asyncio.Event().wait()
        return await self._queue.get()

    async def give(self, event: Event | None) -> None:
        putting = asyncio.ensure_future(self._queue.put(event))
        leaving = asyncio.ensure_future(self._gone.wait())
        await asyncio.wait({putting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        for each in (putting, leaving):
            each.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await each


class Fan:
    def __init__(self) -> None:
        self._readers: list[Reader] = []
        self._one_at_a_time = asyncio.Lock()
        self.closed = False

    @property
    def has_readers(self) -> bool:
        return any(not each.gone for each in self._readers)

    def join(self) -> Reader:
        self._readers = [each for each in self._readers if not each.gone]
        reader = Reader()
        self._readers.append(reader)
        return reader

    async def send(self, event: Event) -> None:
        async with self._one_at_a_time:
            for reader in [each for each in self._readers if not each.gone]:
                await reader.give(event)

    async def close(self) -> None:
        async with self._one_at_a_time:
            self.closed = True
            for reader in [each for each in self._readers if not each.gone]:
                await reader.give(None)

    def wedge(self) -> None:
        """Every reader of now stops reading without leaving."""
        for reader in self._readers:
            reader.stuck = True
