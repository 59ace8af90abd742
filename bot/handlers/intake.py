"""Takes stored deliveries up, in order within a thread, and notes in the ledger what became of each."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import partial

from bot import events, logs
from bot.errors import GitHubRefused, TransientError, UserError
from bot.events import Event
from bot.events.accounts import AccessChanged, InstallationChanged
from bot.events.checks import CheckAsked, CheckEnded
from bot.events.ignored import Ignored
from bot.events.remarks import CommentDeleted, CommentEdited
from bot.events.threads import ThreadChanged
from bot.handlers import check_buttons, ci, departures, installations, own_comments, remarks, thread_changes
from bot.handlers.desk import Desk
from bot.handlers.rota import Rota
from bot.handlers.verdicts import Noted, ignored, refused
from bot.loops import Loop
from bot.portions import LARGE_BODY, beside
from bot.store import deliveries, waiting
from bot.store.deliveries import Delivery, DeliveryState
from bot.store.waiting import ThreadId

log = logging.getLogger(__name__)

MOST_ATTEMPTS = 40
"""Half an hour of GitHub not answering."""
LOOK_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 60.0
MOST_OFFERED = 256
IN_A_ROW = 20
"""Deliveries of one thread; then others get its place."""
REST = 4
"""So many times as long as a look took, the next one waits at least: a long line must not be all that is looked at."""
SHORTEST_REST_SECONDS, LONGEST_REST_SECONDS = 0.01, 0.5
BODIES_AT_ONCE = 4
"""Of up to 25 MB each, between the store and the event that comes of one."""


class Intake:
    """Threads are taken up side by side: one that GitHub keeps waiting holds up nobody else's, and an account whose
    threads wait by the thousand no other account's."""

    def __init__(self, desk: Desk, wakes: asyncio.Event) -> None:
        self._desk = desk
        self._rota = Rota()
        self._bodies = asyncio.Semaphore(BODIES_AT_ONCE)
        self.loop = Loop("intake", self._look, LOOK_SECONDS, wakes=wakes)
        """What could not be done stays in the ledger and is tried again."""

    async def _look(self) -> float:
        """Take up what waits; how long until something is due that nobody will tell us of."""
        clock = asyncio.get_running_loop().time
        began = clock()
        self._rota.offer(await waiting.threads(self._desk.store, MOST_OFFERED + self._rota.paused))
        self._begin()
        due = self._rota.next_due(clock())
        await asyncio.sleep(min(max(SHORTEST_REST_SECONDS, REST * (clock() - began)), LONGEST_REST_SECONDS))
        return LOOK_SECONDS if due is None else max(0.05, min(LOOK_SECONDS, due - clock()))

    def _begin(self) -> None:
        """As many as may go now."""
        if self.loop.has_ended:
            return
        for thread in self._rota.take(asyncio.get_running_loop().time()):
            self.loop.begin(self._chain(thread))

    async def _chain(self, thread: ThreadId) -> None:
        """One thread's deliveries in order: one that must wait holds up the later ones."""
        pause = 0.0
        try:
            for _ in range(IN_A_ROW):
                if (found := await self._next(thread)) is None:
                    break
                with logs.about(delivery=found[0].guid):
                    if pause := await self._one(*found):
                        break
        except TransientError as error:  # of the store: nothing is known of this try
            log.warning("intake waits for the store", extra={"error": str(error)})
            pause = error.retry_after or 1.0
        except Exception:
            log.exception("intake failed", extra={"thread": str(thread)})
            pause = LOOK_SECONDS
        finally:
            self._rota.done(thread, asyncio.get_running_loop().time() + pause)
            self._begin()
            self.loop.wake()

    async def _next(self, thread: ThreadId) -> tuple[Delivery, Event | Exception] | None:
        """The oldest of a thread, its body decoded and let go of."""
        async with self._bodies:
            delivery = await waiting.first_of(self._desk.store, thread)
            if delivery is None:
                return None
            body, now = delivery.body or "", self._desk.clock()
            decode = partial(events.decode, delivery.event, body, delivery=delivery.guid, now=now)
            try:
                event: Event | Exception = await beside(decode, size=len(body), most=LARGE_BODY)
            except Exception as error:  # noqa: BLE001 - a bug, which is noted where the others are
                event = error
        return replace(delivery, body=None), event

    async def _one(self, delivery: Delivery, event: Event | Exception) -> float:
        """0 when it is settled, else the seconds until the next try."""
        attempt = await deliveries.bump_attempt(self._desk.store, delivery.guid)
        if not attempt:  # somebody else has settled it since it was read
            return 0.0
        try:
            noted = await self._dispatch(event)
        except TransientError as error:
            log.warning("delivery waits", extra={"error": str(error), "attempt": attempt})
            if attempt < MOST_ATTEMPTS:
                return error.retry_after or min(0.5 * 2**attempt, LONGEST_PAUSE_SECONDS)
            noted = Noted(DeliveryState.FAILED, f"given up after {attempt} tries: {error}")
        except UserError as error:
            noted = refused(str(error))
        except GitHubRefused as error:  # a thread that is locked or gone meanwhile
            log.warning("GitHub did not take it", extra={"delivery": delivery.guid, "error": str(error)})
            noted = Noted(DeliveryState.FAILED, f"GitHub did not let us answer ({error.status})")
        except Exception as error:  # a bug: this delivery must not hold up the others
            log.exception("delivery failed")
            noted = Noted(DeliveryState.FAILED, f"something broke on our side ({type(error).__name__})")
        await deliveries.settle(self._desk.store, delivery.guid, noted.state, noted.reason, noted.session)
        if noted.session is not None:
            log.info("delivery acted upon", extra={"session": noted.session})
        return 0.0

    async def _dispatch(self, event: Event | Exception) -> Noted:
        match event:
            case Exception():
                raise event
            case Ignored():
                return ignored(event.reason)
            case CommentEdited():
                return await own_comments.edited(event, self._desk)
            case CommentDeleted():
                return await own_comments.deleted(event, self._desk)
            case CheckAsked():
                return await check_buttons.handle(event, self._desk)
            case CheckEnded():
                return await ci.ended(event, self._desk)
            case ThreadChanged():
                return await thread_changes.handle(event, self._desk)
            case AccessChanged() | InstallationChanged():
                return await self._of_an_account(event)
            case _:
                return await remarks.handle(event, self._desk)

    async def _of_an_account(self, event: AccessChanged | InstallationChanged) -> Noted:
        """What becomes of no thread."""
        if isinstance(event, AccessChanged):
            return await departures.handle(event, self._desk)
        return await installations.handle(event, self._desk)
