"""Judges by their beats which replicas live, and makes this one the leader when there is none.

Only the count of a beat matters, and how long it stood still while we looked: no clock is compared with another, and
time in which the database was away counts for nobody."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bot.errors import TransientError
from bot.loops import Loop, background
from bot.store import replicas
from bot.store.base import Store
from bot.store.replicas import Membership, Replica

log = logging.getLogger(__name__)

BEAT_SECONDS = 2.0
LONGEST_GAP_SECONDS = 5.0
"""After a longer gap between two looks, nobody's silence before it counts."""
ADOPT_SECONDS = 15.0
SURE_SHARE = 0.8
"""For this share of the patience after a confirmed beat, nobody can have given us up."""


class BeatWatch:
    """Knows how long each beat has stood still."""

    def __init__(self, patience_seconds: float) -> None:
        self._patience = patience_seconds
        self._seen: dict[str, tuple[int, float]] = {}
        self._looked_at = float("-inf")

    def silent(self, found: Sequence[Replica], now: float) -> list[Replica]:
        """Return those whose beat has stood still for too long."""
        if now - self._looked_at > LONGEST_GAP_SECONDS:
            self._seen.clear()
        self._looked_at = now
        known, self._seen = self._seen, {}
        for one in found:
            beat, since = known.get(one.id, (one.beat, now))
            self._seen[one.id] = (one.beat, since if beat == one.beat else now)
        return [one for one in found if now - self._seen[one.id][1] >= self._patience]


@dataclass(frozen=True)
class Duties:
    """What a replica does when its place among the others changes."""

    lead: Callable[[], Awaitable[None]]
    """Begin what only the leader does, until this process ends. After an error it is called again."""
    adopt: Callable[[], Awaitable[None]]
    """Take over what replicas left that are no more. The leader does it."""


class Replicas:
    """Two loops, so that no duty delays a beat."""

    def __init__(self, store: Store, membership: Membership, patience_seconds: float) -> None:
        self.beats = Loop("beats", self._beat, BEAT_SECONDS)
        self.takeovers = Loop("takeovers", self._take_over, BEAT_SECONDS)
        self.found: list[Replica] = []
        """All replicas at the last beat."""
        self.leads = False
        self._store = store
        self._membership = membership
        self._patience = patience_seconds
        self._watch = BeatWatch(patience_seconds)
        self.round_trip_seconds = 0.0
        """Of the last beat."""
        self._silent: list[Replica] = []
        self._confirmed_at = self._led_at = time.monotonic()
        self._known: set[str] = set()
        self._adopt_at = 0.0
        self._duties: Duties | None = None

    def look(self) -> None:
        """Beat now, because something has changed."""
        self.beats.wake()

    @asynccontextmanager
    async def on_duty(self, duties: Duties) -> AsyncIterator[None]:
        """Give up silent replicas, and lead if nobody does, while the block lasts. No duty begins after it."""
        self._duties = duties
        async with background(self.takeovers.run()):
            yield

    @property
    def lag_seconds(self) -> float:
        """Seconds since our last confirmed beat."""
        return time.monotonic() - self._confirmed_at

    @property
    def reconnects(self) -> int:
        return self._membership.reconnects

    async def step_down(self) -> None:
        """Lead no more, and let another do so."""
        if self.leads:
            self.leads = False
            await replicas.resign(self._store, self._membership.id)

    def is_sure(self) -> bool:
        """Tell whether no other can have given us up by now. It is False right after a freeze, too."""
        return self.lag_seconds < SURE_SHARE * self._patience

    def is_leaderless(self) -> bool:
        """Tell whether nobody has led for longer than our patience, as far as the database has told us."""
        return self._confirmed_at - self._led_at > self._patience

    async def _beat(self) -> float:
        began = time.monotonic()
        try:
            found = await self._membership.beat()
        except TransientError as error:
            log.warning("the database does not take our beat", extra={"error": str(error)})
            return BEAT_SECONDS  # never later: others count from the last one that they saw
        self._confirmed_at, self.round_trip_seconds = began, time.monotonic() - began
        if any(one.leads for one in found):
            self._led_at = began
        self._silent = [one for one in self._watch.silent(found, began) if one.id != self._membership.id]
        self.found = found
        if self._silent or {one.id for one in found} != self._known or not any(one.leads for one in found):
            self.takeovers.wake()
        return BEAT_SECONDS

    async def _take_over(self) -> None:
        silent, self._silent = self._silent, []
        for dead in silent:
            if await replicas.give_up(self._store, dead):
                log.warning("a replica is silent: it is given up", extra={"replica": dead.id, "host": dead.host})
        if self._duties is not None and self.found:
            await self._serve(self._duties)

    async def _serve(self, duties: Duties) -> None:
        ours = self._membership.id
        is_led = self.leads or any(one.leads and one.id != ours for one in self.found)
        if not is_led and await replicas.lead(self._store, ours):
            await duties.lead()
            self.leads = True
            log.info("this replica leads", extra={"replica": ours})
        ids, now = {one.id for one in self.found}, time.monotonic()
        if self.leads and (self._known - ids or now >= self._adopt_at):
            await duties.adopt()
            self._adopt_at = now + ADOPT_SECONDS
        self._known = ids
