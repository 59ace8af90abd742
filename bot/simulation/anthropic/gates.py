"""Named places at which an answer waits until a test or the demo lets it go on."""

from __future__ import annotations

import asyncio
from collections import defaultdict


class Gates:
    """A released name stays open."""

    def __init__(self) -> None:
        self._open: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._reached: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._closing = False

    def release(self, name: str) -> None:
        self._open[name].set()

    def release_all(self) -> None:
        self._closing = True
        for event in self._open.values():
            event.set()

    async def reached(self, name: str, timeout: float = 10.0) -> None:
        """Return once an answer waits (or waited) there."""
        async with asyncio.timeout(timeout):
            await self._reached[name].wait()

    async def pass_through(self, name: str) -> None:
        self._reached[name].set()
        if not self._closing:
            await self._open[name].wait()
