"""Reads GitHub's own log of deliveries: takes up those that no webhook has brought, in order and each once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from bot.errors import GitHubRefused, TransientError
from bot.events import HANDLED_EVENTS
from bot.events.threads import MAX_AGE_SECONDS
from bot.github.client import GitHubApp
from bot.github.types import LoggedDelivery
from bot.loops import Loop
from bot.models import DeliveryId
from bot.store import deliveries, sessions
from bot.store.base import Store
from bot.store.deliveries import DeliveryLogMark, DeliveryState, NewDelivery
from bot.web import bodies

log = logging.getLogger(__name__)

OVERLAP_SECONDS = 15 * 60.0  # a delivery may appear in the log long after it was made
KEPT_SECONDS = 3 * 24 * 3600.0  # how long github.com keeps its log
MOST_PAGES = 100
MOST_PAYLOADS = 100
"""In one sweep; if there are more, the next sweep follows at once."""
MOST_TRIES = 3
"""For one payload; then we give it up, so that later ones get their turn."""
SWEEP_SECONDS = 300.0
QUIET_FACTOR = 4
ACTIVE_SECONDS = 600.0
CLOCK_SECONDS = 30.0
"""A smaller difference between the clocks is ignored: we know GitHub's only to the second."""
TICK = 1e-5
"""Keeps two deliveries of a sweep in order even if the clock stands still."""


@dataclass(frozen=True)
class LogReading:
    """With `poll_seconds`, the log is the only source of deliveries. Otherwise it only adds to the webhooks."""

    app_id: int
    on_stored: Callable[[], None]
    poll_seconds: float = 0.0
    since: float | None = None
    """When the service began to start: what people say while it starts is meant for it."""


@dataclass
class _Listed:
    """All attempts at one GUID: the first, the last, and whether GitHub saw any of them accepted."""

    first: LoggedDelivery
    last: LoggedDelivery
    accepted: bool


class DeliveryLog:
    def __init__(self, github: GitHubApp, store: Store, reading: LogReading) -> None:
        self._github = github
        self._store = store
        self._reading = reading
        self._began_at = store.now() if reading.since is None else reading.since
        self._last_at = 0.0
        self._tries: dict[str, int] = {}
        every = reading.poll_seconds or SWEEP_SECONDS
        self.loop = Loop("delivery_log", self._sweep, every, rest_seconds=SWEEP_SECONDS)

    async def _sweep(self) -> float:
        """Take up what is new; return the seconds until the next sweep."""
        mark = await deliveries.log_mark(self._store, self._reading.app_id)
        if mark is None:
            await self._begin()
            return await self._pause()
        listed = await self._list(mark)
        wanted = [each for each in listed.values() if self._is_wanted(each, mark)]
        known = await deliveries.known(self._store, [each.last.guid for each in wanted])
        wanted.sort(key=lambda each: (each.first.at, each.first.id))
        missed = [each.last for each in wanted if each.last.guid not in known]
        for each in missed[:MOST_PAYLOADS]:
            await self._take(each)
        if len(missed) > MOST_PAYLOADS:
            return 0.0
        if listed:
            await deliveries.move_log_mark(self._store, mark.app_id, max(each.last.at for each in listed.values()))
        return await self._pause()

    async def _begin(self) -> None:
        """Set the mark at the first start ever: nothing said before was meant for us."""
        skew = await self._github.clock_skew()
        began = float(int(self._began_at + (skew if abs(skew) > CLOCK_SECONDS else 0.0)))  # the log knows seconds only
        listed = (await self._github.deliveries()).items
        last = max((one.id for one in listed if one.at <= began), default=0)
        await deliveries.begin_log(self._store, self._reading.app_id, began, last)
        log.info("the delivery log is read from here on", extra={"after": began})

    async def _list(self, mark: DeliveryLogMark) -> dict[str, _Listed]:
        """List by GUID, back to a little before the mark: several attempts are one delivery."""
        found: dict[str, _Listed] = {}
        until, cursor, seen = mark.read_at - OVERLAP_SECONDS, None, set[str]()
        for _ in range(MOST_PAGES):
            page = await self._github.deliveries(cursor)
            for one in page.items:
                each = found.setdefault(one.guid, _Listed(one, one, accepted=False))
                each.first, each.accepted = one, each.accepted or one.is_accepted
            cursor = page.next_cursor
            if cursor is None or cursor in seen or (page.items and page.items[-1].at < until):
                break
            seen.add(cursor)
        else:
            log.warning("the delivery log is too long to read at once; its oldest part is left out")
        newest = max((each.last.at for each in found.values()), default=0.0)
        if newest - (mark.read_at or newest) > KEPT_SECONDS:
            log.warning("the last read was longer ago than GitHub keeps its log: the first deliveries may be lost")
        return found

    def _is_wanted(self, each: _Listed, mark: DeliveryLogMark) -> bool:
        """Never repeat what a webhook has brought, whatever the store remembers. A delivery that a person sent again
        after our first look is meant for us."""
        last = each.last
        # Only a body says whether a push matters, and what a lost one said is read again soon.
        handled = last.event != "push" and bodies.is_wanted(last.event, last.action, HANDLED_EVENTS)
        in_time = not mark.is_history(last.at, last.id) and last.at > self._store.now() - MAX_AGE_SECONDS
        return handled and in_time and (self._reading.poll_seconds > 0 or not each.accepted)

    async def _take(self, listed: LoggedDelivery) -> None:
        new = await self._read(listed)
        self._last_at = max(self._store.now(), self._last_at + TICK)
        await deliveries.add(self._store, new, self._last_at)
        self._tries.pop(listed.guid, None)
        log.info("a delivery was found in GitHub's log", extra={"delivery": listed.guid, "event": listed.event})
        self._reading.on_stored()

    async def _read(self, listed: LoggedDelivery) -> NewDelivery:
        tries = self._tries[listed.guid] = self._tries.get(listed.guid, 0) + 1
        try:
            body = await self._github.delivery_payload(listed.id)
            return await asyncio.to_thread(
                bodies.ledger_entry, listed.guid, listed.event, body, deliveries.UNSEEN, HANDLED_EVENTS
            )
        except (TransientError, GitHubRefused, bodies.NotJson, UnicodeDecodeError) as error:
            if isinstance(error, TransientError) and (tries < MOST_TRIES or error.retry_after is not None):
                raise
            why = str(error)
        log.error("a delivery cannot be read from GitHub's log", extra={"delivery": listed.guid, "error": why})
        return NewDelivery(
            guid=DeliveryId(listed.guid),
            event=listed.event,
            body_sha256=deliveries.UNSEEN,
            action=listed.action,
            state=DeliveryState.FAILED,
            reason=f"It was missed, and GitHub's log does not give it back: {why}"[:500],
            installation_id=listed.installation_id,
            repo_id=listed.repository_id,
        )

    async def _pause(self) -> float:
        if not self._reading.poll_seconds:
            return SWEEP_SECONDS
        latest = max(self._began_at, await deliveries.latest_at(self._store))  # people try it right after its start
        recent = self._store.now() - latest < ACTIVE_SECONDS
        busy = recent or bool(await sessions.running(self._store))
        return self._reading.poll_seconds * (1 if busy else QUIET_FACTOR)
