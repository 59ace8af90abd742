"""Keeps within the plan: so many sandboxes at a time, so many creations a second, and who came first goes first."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from sandbox.errors import SandboxError

LOOK_SECONDS = 5.0


class Slots:
    """`running` asks E2B which of our sandboxes run, for what has ended without our doing."""

    def __init__(self, most: int, per_second: float, running: Callable[[], Awaitable[set[str]]]) -> None:
        self._most = most
        self._spacing = 1.0 / per_second
        self._running = running
        self._known = False
        self._held: set[str] = set()
        self._promised: set[str] = set()  # taken, but their sandboxes may not be listed yet
        self._line: list[tuple[bool, int]] = []  # who waits for room; the least goes first
        self._numbers = itertools.count()
        self._moved = asyncio.Event()
        self._asking = asyncio.Lock()
        self._pace = asyncio.Lock()
        self._next_at = 0.0

    async def take(self, key: str, *, ahead: bool = False) -> None:
        """Wait for room; a key that holds a place already holds it on. `ahead` goes before all that are not."""
        if key in self._held:
            return
        await self._learn()
        place = (not ahead, next(self._numbers))
        self._line.append(place)
        try:
            await self._room(key, place)
            self._held.add(key)
            self._promised.add(key)
        finally:
            self._line.remove(place)
            self._wake()
        try:
            await self._paced()
        except BaseException:
            self.give(key)
            raise

    def hold(self, key: str) -> None:
        """It runs, whatever the number."""
        self._held.add(key)
        self._promised.discard(key)

    def give(self, key: str) -> None:
        self._held.discard(key)
        self._promised.discard(key)
        self._wake()

    async def _learn(self) -> None:
        async with self._asking:
            if not self._known:
                self._held |= await self._running()
                self._known = True

    async def _room(self, key: str, place: tuple[bool, int]) -> None:
        while key not in self._held and (len(self._held) >= self._most or place != min(self._line)):
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._moved.wait()
            except TimeoutError:
                if place == min(self._line):  # one asks for all
                    with suppress(SandboxError):
                        self._held = await self._running() | self._promised

    async def _paced(self) -> None:
        async with self._pace:
            await asyncio.sleep(self._next_at - time.monotonic())
            self._next_at = time.monotonic() + self._spacing

    def _wake(self) -> None:
        """All that wait now, and nobody who comes later."""
        self._moved.set()
        self._moved.clear()
