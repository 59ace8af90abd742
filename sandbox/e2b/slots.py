"""Keeps within the plan's numbers of sandboxes at a time and of creations per second; first come, first served."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from contextlib import suppress

from sandbox.errors import SandboxError
from sandbox.primitives import PlanPlaces

ASK_SECONDS = 1.0
"""How soon we learn of a place that another process has given back."""
LOOK_SECONDS = 5.0


class OwnPlaces:
    """Places in memory, for processes without a store."""

    def __init__(self) -> None:
        self._line: dict[str, tuple[bool, int]] = {}
        self._numbers = itertools.count()
        self._taken: dict[str, bool] = {}
        """Each with whether it is held, or only promised."""
        self._next_at = 0.0

    async def ask(self, key: str, most: int, spacing: float, *, ahead: bool) -> float | None:
        if key in self._taken:
            return 0.0
        place = self._line.setdefault(key, (not ahead, next(self._numbers)))
        if place != min(self._line.values()) or len(self._taken) >= most:
            return None
        del self._line[key]
        self._taken[key] = False
        now = time.monotonic()
        begin = max(now, self._next_at)
        self._next_at = begin + spacing
        return begin - now

    async def hold(self, key: str) -> None:
        self._taken[key] = True

    async def give(self, key: str) -> None:
        self._taken.pop(key, None)
        self._line.pop(key, None)

    async def held(self) -> frozenset[str]:
        return frozenset(key for key, is_held in self._taken.items() if is_held)

    async def correct(self, before: AbstractSet[str], running: AbstractSet[str]) -> None:
        for gone in before - running:
            self._taken.pop(gone, None)
        self._taken |= dict.fromkeys(running - self._taken.keys(), True)


class Slots:
    """The way to a place. `running` asks E2B which of our sandboxes run, because some end without us."""

    def __init__(
        self, most: int, per_second: float, running: Callable[[], Awaitable[set[str]]], places: PlanPlaces
    ) -> None:
        self._most = most
        self._spacing = 1.0 / per_second
        self._running = running
        self._places = places
        self._line: list[tuple[bool, int]] = []
        """Callers here that wait for room; only the first one asks again."""
        self._numbers = itertools.count()
        self._moved = asyncio.Event()
        self._looking = asyncio.Lock()
        self._look_at = float("-inf")

    async def take(self, key: str, *, ahead: bool = False) -> None:
        """Wait for room, unless the key holds a place already. `ahead` goes before all that are not."""
        if self._look_at < 0:  # nobody has looked yet
            await self._look()
        place = (not ahead, next(self._numbers))
        self._line.append(place)
        try:
            if (wait := await self._room(key, place)) > 0:
                await asyncio.sleep(wait)
        except BaseException:
            await self._places.give(key)
            raise
        finally:
            self._leave(place)

    async def hold(self, key: str) -> None:
        """Count a sandbox that runs, even beyond the limit."""
        await self._places.hold(key)

    async def give(self, key: str) -> None:
        await self._places.give(key)
        self._wake()

    async def _room(self, key: str, place: tuple[bool, int]) -> float:
        """Return after how many seconds it may be created."""
        while (wait := await self._places.ask(key, self._most, self._spacing, ahead=not place[0])) is None:
            await self._turn(place)
        self._leave(place)
        return wait

    async def _turn(self, place: tuple[bool, int]) -> None:
        """Wait until it makes sense to ask again."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(ASK_SECONDS):
                    await self._moved.wait()
            if place == min(self._line):
                with suppress(SandboxError):
                    await self._look()
                return

    async def _look(self) -> None:
        """Compare the places with what runs, from time to time."""
        async with self._looking:
            if time.monotonic() < self._look_at:
                return
            before = await self._places.held()
            await self._places.correct(before, await self._running())
            self._look_at = time.monotonic() + LOOK_SECONDS

    def _leave(self, place: tuple[bool, int]) -> None:
        if place in self._line:
            self._line.remove(place)
            self._wake()

    def _wake(self) -> None:
        """Wake the callers that wait now, not later ones."""
        self._moved.set()
        self._moved.clear()
