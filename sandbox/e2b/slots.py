"""Keeps within the plan's numbers of sandboxes at a time and of creations per second; first come, first served."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from sandbox.errors import SandboxError

LOOK_SECONDS = 5.0


class Slots:
    """Places for running sandboxes. `running` asks E2B which of ours run, because some end without us."""

    def __init__(self, most: int, per_second: float, running: Callable[[], Awaitable[set[str]]]) -> None:
        self._most = most
        self._spacing = 1.0 / per_second
        self._running = running
        self._known = False
        self._held: set[str] = set()
        self._promised: set[str] = set()  # taken, but E2B may not list their sandboxes yet
        self._line: list[tuple[bool, int]] = []  # callers that wait for room; the smallest goes first
        self._numbers = itertools.count()
        self._moved = asyncio.Event()
        self._asking = asyncio.Lock()
        self._pace = asyncio.Lock()
        self._next_at = 0.0

    async def take(self, key: str, *, ahead: bool = False) -> None:
        """Wait for room, unless the key holds a place already. `ahead` goes before all that are not."""
        if key in self._held:
            return
        async with self._asking:
            if not self._known:
                self._held |= await self._running()
                self._known = True
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
            async with self._pace:
                await asyncio.sleep(self._next_at - time.monotonic())
                self._next_at = time.monotonic() + self._spacing
        except BaseException:
            self.give(key)
            raise

    def hold(self, key: str) -> None:
        """Count a sandbox that runs, even beyond the limit."""
        self._held.add(key)
        self._promised.discard(key)

    def give(self, key: str) -> None:
        self._held.discard(key)
        self._promised.discard(key)
        self._wake()

    async def _room(self, key: str, place: tuple[bool, int]) -> None:
        while key not in self._held and (len(self._held) >= self._most or place != min(self._line)):
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._moved.wait()
            except TimeoutError:
                if place == min(self._line):  # one caller asks for all
                    with suppress(SandboxError):
                        self._held = await self._running() | self._promised

    def _wake(self) -> None:
        """Wake the callers that wait now, not later ones."""
        self._moved.set()
        self._moved.clear()
