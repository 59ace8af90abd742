"""Which live comments are to be written, in which order, and how long until the next: in memory only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from bot.live.allowance import Allowance
from bot.models import TurnKey

FINAL_SPACING_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
FOREVER = float("inf")


@dataclass
class Due:
    final: bool = False
    not_before: float = 0.0
    tries: int = 0


class DueList:
    """At most one entry a turn: the latest state is written, never a queue of states.

    Its own times are of a clock that never jumps: a wall clock set back must not silence a comment.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[TurnKey, Due] = {}
        self._written: dict[TurnKey, float] = {}
        self._wake = asyncio.Event()

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, key: TurnKey, *, final: bool) -> None:
        entry = self._entries.setdefault(key, Due())
        entry.final = entry.final or final
        self._wake.set()

    def next(self, now: float, allowance: Allowance) -> tuple[TurnKey, float]:
        """The one to write next and how long to wait before: finals, then the one that waited longest."""
        spacing, here = allowance.spacing_seconds(now), self._clock()

        def wait(key: TurnKey) -> float:
            entry = self._entries[key]
            rested = self._written.get(key, -FOREVER) + (FINAL_SPACING_SECONDS if entry.final else spacing)
            return max(allowance.wait_seconds(now, final=entry.final), rested - here, entry.not_before - here, 0.0)

        def rank(key: TurnKey) -> tuple[float, bool, float]:
            return wait(key), not self._entries[key].final, self._written.get(key, -FOREVER)

        key = min(self._entries, key=rank)
        self._wake.clear()
        return key, wait(key)

    async def wait(self, seconds: float) -> None:
        """Until the time is up or something was added."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    def take(self, key: TurnKey) -> Due:
        return self._entries.pop(key)

    def put_back(self, key: TurnKey, entry: Due) -> None:
        """It could not be written: later, and later each time."""
        known = self._entries.setdefault(key, entry)
        known.final = known.final or entry.final
        known.tries = entry.tries + 1
        known.not_before = self._clock() + min(0.5 * 2**known.tries, LONGEST_PAUSE_SECONDS)

    def written(self, key: TurnKey) -> None:
        now = self._written[key] = self._clock()
        if len(self._written) > 1000:
            self._written = {one: at for one, at in self._written.items() if now - at < LONGEST_PAUSE_SECONDS}
