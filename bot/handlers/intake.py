"""Takes stored deliveries up, in order within a thread, and notes in the ledger what became of each."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict

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
from bot.handlers.verdicts import Noted, ignored, refused
from bot.store import deliveries
from bot.store.deliveries import Delivery, DeliveryState

log = logging.getLogger(__name__)

MOST_ATTEMPTS = 40
"""Half an hour of GitHub not answering."""
LOOK_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 60.0
BATCH = 200
AT_ONCE = 16

_Thread = tuple[int | None, int] | str


class Intake:
    """Threads are taken up side by side: one that GitHub keeps waiting holds up nobody else's."""

    def __init__(self, desk: Desk, wakes: asyncio.Event) -> None:
        self._desk = desk
        self._wakes = wakes
        self._room = asyncio.Semaphore(AT_ONCE)
        self._under_way: dict[_Thread, asyncio.Task[None]] = {}
        self._not_before: dict[_Thread, float] = {}

    async def run(self) -> None:
        """Until cancelled; what could not be done stays in the ledger and is tried again."""
        try:
            while True:
                self._wakes.clear()
                pause = await self._look()
                try:
                    async with asyncio.timeout(pause):
                        await self._wakes.wait()
                except TimeoutError:
                    continue
        finally:
            tasks = list(self._under_way.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> float:
        """Take up what waits; how long until something is due that nobody will tell us of."""
        try:
            waiting = await deliveries.waiting(self._desk.store, BATCH)
        except Exception:  # the loop must outlive a failure of the store
            log.exception("intake cannot look")
            return LOOK_SECONDS
        chains: dict[_Thread, list[Delivery]] = defaultdict(list)
        for delivery in waiting:
            chains[(delivery.repo_id, delivery.number) if delivery.number else delivery.guid].append(delivery)
        self._not_before = {thread: at for thread, at in self._not_before.items() if thread in chains}
        now = asyncio.get_running_loop().time()
        for thread in chains.keys() - self._under_way.keys():
            if self._not_before.get(thread, now) <= now:
                self._under_way[thread] = asyncio.create_task(self._chain(thread, chains[thread]))
        return max(0.05, min([LOOK_SECONDS, *(at - now for at in self._not_before.values() if at > now)]))

    async def _chain(self, thread: _Thread, chain: list[Delivery]) -> None:
        """One thread's deliveries in order: one that must wait holds up the later ones."""
        pause = 0.0
        try:
            async with self._room:
                for delivery in chain:
                    with logs.about(delivery=delivery.guid):
                        if pause := await self._one(delivery):
                            return
        except TransientError as error:  # of the store: nothing is known of this try
            log.warning("intake waits for the store", extra={"error": str(error)})
            pause = error.retry_after or 1.0
        except Exception:
            log.exception("intake failed", extra={"thread": str(thread)})
            pause = LOOK_SECONDS
        finally:
            self._under_way.pop(thread, None)
            self._not_before[thread] = asyncio.get_running_loop().time() + pause
            self._wakes.set()

    async def _one(self, delivery: Delivery) -> float:
        """0 when it is settled, else the seconds until the next try."""
        attempt = await deliveries.bump_attempt(self._desk.store, delivery.guid)
        if not attempt:  # while we looked, the task before this one was done with it
            return 0.0
        try:
            noted = await self._dispatch(delivery)
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

    async def _dispatch(self, delivery: Delivery) -> Noted:
        event: Event = events.decode(
            delivery.event, delivery.body or "", delivery=delivery.guid, now=self._desk.clock()
        )
        match event:
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
