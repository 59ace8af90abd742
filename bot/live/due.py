"""Which live comments are to be written, in which order, and how long until the next: in memory only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from bot.live.edit_quota import EditQuota
from bot.models import TurnKey

LONGEST_REST_SECONDS = 60.0
FIRST_RETRY_SECONDS = 0.5
LATELY_SECONDS = 60.0
FOREVER = float("inf")


class Weight(IntEnum):
    """What a change is worth: the heavier goes first, and from PRESSING on out of the bucket's reserve."""

    NEWS = 0
    PRESSING = 1
    """A question, a wish to stop, a box that was ticked: somebody waits for what the comment says next."""
    FINAL = 2


@dataclass
class Due:
    weight: Weight = Weight.NEWS
    not_before: float = 0.0
    tries: int = 0

    @property
    def final(self) -> bool:
        return self.weight is Weight.FINAL

    @property
    def first(self) -> bool:
        return self.weight >= Weight.PRESSING


class DueList:
    """At most one entry a turn: the latest state is written, never a queue of states.

    Its own times are of a clock that never jumps: a wall clock set back must not silence a comment.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[TurnKey, Due] = {}
        self._last_began = -FOREVER
        self._since: dict[TurnKey, float] = {}
        """Of the oldest news that its comment does not show."""
        self._held: set[TurnKey] = set()
        self._heard: dict[TurnKey, float] = {}
        self._wake = asyncio.Event()

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, key: TurnKey, weight: Weight = Weight.NEWS) -> None:
        entry = self._entries.setdefault(key, Due())
        entry.weight = max(entry.weight, weight)
        self._heard[key] = self._clock()
        self._since.setdefault(key, self._heard[key])
        self._wake.set()

    def sessions(self) -> int:
        since = self._clock() - LATELY_SECONDS
        self._heard = {key: at for key, at in self._heard.items() if at > since}
        return len(self._heard)

    def forget(self, key: TurnKey) -> None:
        self._heard.pop(key, None)
        self._since.pop(key, None)

    def next(self, now: float, quota: EditQuota) -> tuple[TurnKey, float]:
        """The one to write next and how long to wait before: the weightiest, then the one with the oldest news."""
        here = self._clock()
        waits = {
            True: quota.wait_seconds(now, first=True),
            False: max(quota.wait_seconds(now, first=False), self._last_began + quota.spacing_seconds(now) - here),
        }

        def wait(key: TurnKey) -> float:
            if key in self._held:
                return LONGEST_REST_SECONDS
            entry = self._entries[key]
            return max(waits[entry.first], entry.not_before - here, 0.0)

        def rank(key: TurnKey) -> tuple[float, int, float]:
            return wait(key), -self._entries[key].weight, self._since.get(key, FOREVER)

        key = min(self._entries, key=rank)
        self._wake.clear()
        return key, wait(key)

    async def wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    def take(self, key: TurnKey) -> Due:
        """Takes it out to be written; what is news from here on is not in it."""
        self._since.pop(key, None)
        return self._entries.pop(key)

    def hold(self, key: TurnKey) -> None:
        """Holds newer news back while it is written, so that they cannot overtake it."""
        self._held.add(key)

    def let_go(self, key: TurnKey) -> None:
        self._held.discard(key)
        self._wake.set()

    def began(self) -> None:
        """A write goes out: the next is spaced from here, however long this one takes."""
        self._last_began = self._clock()

    def put_back(self, key: TurnKey, entry: Due) -> None:
        """Tries later, and later each time."""
        known = self._entries.setdefault(key, entry)
        self._since.setdefault(key, self._clock())
        known.weight = max(known.weight, entry.weight)
        known.tries = entry.tries + 1
        known.not_before = self._clock() + min(FIRST_RETRY_SECONDS * 2**known.tries, LONGEST_REST_SECONDS)
