"""Keeps within the plan: so many sandboxes at a time, so many creations a second, and who came first goes first."""

from __future__ import annotations

import asyncio
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
        self._promised: set[str] = set()
        """Taken, but their sandboxes may not be listed yet."""
        self._line = asyncio.Lock()  # first come, first served
        self._freed = asyncio.Event()
        self._next_at = 0.0

    async def take(self, key: str) -> None:
        """Wait for room; a key that holds a place already holds it on."""
        if key in self._held:
            return
        async with self._line:
            if not self._known:
                self._held |= await self._running()
                self._known = True
            await self._room(key)
            self._held.add(key)
            self._promised.add(key)
            await asyncio.sleep(self._next_at - time.monotonic())
            self._next_at = time.monotonic() + self._spacing

    def hold(self, key: str) -> None:
        """It runs, whatever the number."""
        self._held.add(key)
        self._promised.discard(key)

    def give(self, key: str) -> None:
        self._held.discard(key)
        self._promised.discard(key)
        self._freed.set()

    async def _room(self, key: str) -> None:
        while key not in self._held and len(self._held) >= self._most:
            self._freed.clear()
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._freed.wait()
            except TimeoutError:
                with suppress(SandboxError):
                    self._held = await self._running() | self._promised
