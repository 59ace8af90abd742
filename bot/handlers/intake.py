"""Takes stored deliveries up, in order within a thread, and notes in the ledger what became of each."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict

from bot import events
from bot.errors import TransientError, UserError
from bot.events import CommentCreated, Event, Ignored, InstallationChanged, IssueOpened
from bot.handlers import installations, remarks
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, ignored, refused
from bot.store import deliveries
from bot.store.deliveries import Delivery, DeliveryState

log = logging.getLogger(__name__)

MOST_ATTEMPTS = 8
LOOK_SECONDS = 10.0
BATCH = 200
AT_ONCE = 8


class Intake:
    def __init__(self, desk: Desk, wakes: asyncio.Event) -> None:
        self._desk = desk
        self._wakes = wakes
        self._room = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Until cancelled; what could not be done stays in the ledger and is tried again."""
        while True:
            self._wakes.clear()
            try:
                pause = await self.round()
            except Exception:  # the loop must outlive a failure of the store
                log.exception("intake round failed")
                pause = LOOK_SECONDS
            try:
                async with asyncio.timeout(pause):
                    await self._wakes.wait()
            except TimeoutError:
                continue

    async def round(self) -> float:
        """All that waits, threads side by side; how long to wait before the next look."""
        chains: dict[object, list[Delivery]] = defaultdict(list)
        for delivery in await deliveries.waiting(self._desk.store, BATCH):
            thread = (delivery.repo_id, delivery.number) if delivery.number else delivery.guid
            chains[thread].append(delivery)
        pauses = await asyncio.gather(*(self._chain(chain) for chain in chains.values()))
        return min([LOOK_SECONDS, *pauses])

    async def _chain(self, chain: list[Delivery]) -> float:
        """One thread's deliveries in order: one that must wait holds up the later ones."""
        async with self._room:
            for delivery in chain:
                pause = await self._one(delivery)
                if pause:
                    return pause
        return LOOK_SECONDS

    async def _one(self, delivery: Delivery) -> float:
        """0 when it is settled, else the seconds until the next try."""
        attempt = await deliveries.bump_attempt(self._desk.store, delivery.guid)
        try:
            noted = await self._dispatch(delivery)
        except TransientError as error:
            log.warning("delivery waits", extra={"delivery": delivery.guid, "error": str(error), "attempt": attempt})
            if attempt < MOST_ATTEMPTS:
                return error.retry_after or min(0.5 * 2**attempt, 60.0)
            noted = Noted(DeliveryState.FAILED, f"given up after {attempt} tries: {error}")
        except UserError as error:
            noted = refused(str(error))
        except Exception as error:  # a bug: this delivery must not hold up the others
            log.exception("delivery failed", extra={"delivery": delivery.guid})
            noted = Noted(DeliveryState.FAILED, f"something broke on our side ({type(error).__name__})")
        await deliveries.settle(self._desk.store, delivery.guid, noted.state, noted.reason, noted.session)
        return 0.0

    async def _dispatch(self, delivery: Delivery) -> Noted:
        event: Event = events.decode(
            delivery.event, delivery.body or "", delivery=delivery.guid, now=self._desk.clock()
        )
        match event:
            case Ignored():
                return ignored(event.reason)
            case CommentCreated() | IssueOpened():
                return await remarks.handle(event, self._desk)
            case InstallationChanged():
                return await installations.handle(event, self._desk)
            case _:
                return ignored(f"`{delivery.event}` ({delivery.action}) starts nothing yet")
