"""Handles stored deliveries, in order within a thread, and stores the outcome of each in the ledger."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from bot import events, logs
from bot.errors import GitHubRefused, TransientError, UserError
from bot.events import Event
from bot.events.accounts import AccessChanged, AccountRepositoryPushed, InstallationChanged
from bot.events.api import ApiAsked
from bot.events.checks import CheckAsked, CheckEnded
from bot.events.ignored import Ignored
from bot.events.threads import CommentDeleted, CommentEdited, IssueEdited, IssueToggled, Remark, ThreadChanged
from bot.handlers import buttons, changes, ci_rounds, dashboards, remarks
from bot.handlers.desk import Desk, Handled, ignored, refused
from bot.loops import LARGE_BODY, Loop, beside
from bot.notices import Topic
from bot.store import deliveries
from bot.store.deliveries import DeliveryState, StoredDelivery, ThreadId, WaitingThread

log = logging.getLogger(__name__)

MOST_TRIES = 40
"""Half an hour without an answer from GitHub."""
LOOK_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 60.0
MOST_OFFERED = 256
IN_A_ROW = 20
"""Deliveries of one thread before others get its place."""
REST = 4
"""The least pause between two looks, in lengths of the last one: a long queue must not take all our time."""
SHORTEST_REST_SECONDS, LONGEST_REST_SECONDS = 0.01, 0.5
BODIES_AT_ONCE = 4
"""Bodies of up to 25 MB that we hold until their events are read."""
AT_ONCE = 64
"""Fewer than our connections to GitHub: slow threads must leave some for all else."""
OF_AN_ACCOUNT = 8
OF_A_REPOSITORY = 4


class Rota:
    """Gives threads their turn: `offer` what waits in order, `take` what may go now, and say when it is `done`."""

    def __init__(self) -> None:
        self._offered: dict[ThreadId, WaitingThread] = {}
        self._busy: dict[ThreadId, WaitingThread] = {}
        self._accounts: Counter[int | None] = Counter()
        self._repositories: Counter[int | None] = Counter()
        self._not_before: dict[ThreadId, float] = {}

    @property
    def paused(self) -> int:
        return len(self._not_before)

    def offer(self, threads: Iterable[WaitingThread]) -> None:
        self._offered = {one.id: one for one in threads if one.id not in self._busy}

    def take(self, now: float) -> list[ThreadId]:
        self._not_before = {thread: at for thread, at in self._not_before.items() if at > now}
        taken: list[ThreadId] = []
        for thread, one in self._offered.items():
            if len(self._busy) >= AT_ONCE:
                break
            room = one.repo_id is None or self._repositories[one.repo_id] < OF_A_REPOSITORY
            if thread not in self._not_before and room and self._accounts[one.installation_id] < OF_AN_ACCOUNT:
                self._busy[thread] = one
                self._accounts[one.installation_id] += 1
                self._repositories[one.repo_id] += 1
                taken.append(thread)
        for thread in taken:
            del self._offered[thread]
        return taken

    def done(self, thread: ThreadId, not_before: float) -> None:
        """Free its place; it may not be taken again before that time."""
        one = self._busy.pop(thread)
        self._accounts[one.installation_id] -= 1
        self._repositories[one.repo_id] -= 1
        self._not_before[thread] = not_before

    def next_due(self, now: float) -> float | None:
        return min((at for at in self._not_before.values() if at > now), default=None)


class Intake:
    """Handles threads side by side, so that neither a slow thread nor an account with thousands holds up the others."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._rota = Rota()
        self._bodies = asyncio.Semaphore(BODIES_AT_ONCE)
        self.loop = Loop("intake", self._look, LOOK_SECONDS)

    async def _look(self) -> float:
        """Take up what waits, and return how long until the next look without a wake-up."""
        clock = asyncio.get_running_loop().time
        began = clock()
        self._rota.offer(await deliveries.waiting_threads(self._desk.store, MOST_OFFERED + self._rota.paused))
        self._begin()
        due = self._rota.next_due(clock())
        await asyncio.sleep(min(max(SHORTEST_REST_SECONDS, REST * (clock() - began)), LONGEST_REST_SECONDS))
        return LOOK_SECONDS if due is None else max(0.05, min(LOOK_SECONDS, due - clock()))

    def _begin(self) -> None:
        if self.loop.has_ended:
            return
        for thread in self._rota.take(asyncio.get_running_loop().time()):
            self.loop.begin(self._chain(thread))

    async def _chain(self, thread: ThreadId) -> None:
        """Handle one thread's deliveries in order; one that must wait holds up the later ones."""
        pause = 0.0
        try:
            for _ in range(IN_A_ROW):
                if (found := await self._read_next(thread)) is None:
                    break
                with logs.about(delivery=found[0].guid):
                    if pause := await self._handle(*found):
                        break
        except TransientError as error:  # from the store
            log.warning("intake waits for the store", extra={"error": str(error)})
            pause = error.retry_after or 1.0
        except Exception:
            log.exception("intake failed", extra={"thread": str(thread)})
            pause = LOOK_SECONDS
        finally:
            self._rota.done(thread, asyncio.get_running_loop().time() + pause)
            self._begin()
            self.loop.wake()

    async def _read_next(self, thread: ThreadId) -> tuple[StoredDelivery, Event | Exception] | None:
        """Read the thread's oldest delivery and decode its body, which is then dropped."""
        async with self._bodies:
            delivery = await deliveries.first_of(self._desk.store, thread)
            if delivery is None:
                return None
            body, now = delivery.body or "", self._desk.clock()
            decode = partial(events.decode, delivery.event, body, delivery=delivery.guid, now=now)
            try:
                event: Event | Exception = await beside(decode, size=len(body), most=LARGE_BODY)
            except Exception as error:  # noqa: BLE001 - a bug; `_handle` stores it like the others
                event = error
        return replace(delivery, body=None), event

    async def _handle(self, delivery: StoredDelivery, event: Event | Exception) -> float:
        """Handle it; return 0 if it is settled, else the seconds until the next try."""
        tries = await deliveries.count_try(self._desk.store, delivery.guid)
        if not tries:  # settled since it was read
            return 0.0
        try:
            noted = await self._dispatch(event)
        except TransientError as error:
            log.warning("delivery waits", extra={"error": str(error), "tries": tries})
            if tries < MOST_TRIES:
                return error.retry_after or min(0.5 * 2**tries, LONGEST_PAUSE_SECONDS)
            noted = Handled(DeliveryState.FAILED, f"given up after {tries} tries: {error}")
        except UserError as error:
            noted = refused(str(error))
        except GitHubRefused as error:  # the thread was locked or deleted meanwhile
            log.warning("GitHub did not take it", extra={"delivery": delivery.guid, "error": str(error)})
            noted = Handled(DeliveryState.FAILED, f"GitHub did not let us answer ({error.status})")
        except Exception as error:  # a bug: this delivery must not hold up the others
            log.exception("delivery failed")
            noted = Handled(DeliveryState.FAILED, f"something broke on our side ({type(error).__name__})")
        await deliveries.settle(self._desk.store, delivery.guid, noted.state, noted.reason, noted.session)
        if noted.session is not None:
            log.info("delivery acted upon", extra={"session": noted.session})
        return 0.0

    async def _dispatch(self, event: Event | Exception) -> Handled:
        match event:
            case Exception():
                raise event
            case Ignored():
                return ignored(event.reason)
            case CommentEdited():
                return await buttons.edited(event, self._desk)
            case CommentDeleted():
                return await buttons.deleted(event, self._desk)
            case IssueEdited() | IssueToggled():
                return await dashboards.changed(event, self._desk)
            case CheckAsked() | CheckEnded():
                return await _of_checks(event, self._desk)
            case ThreadChanged():
                return await changes.of_thread(event, self._desk)
            case AccessChanged() | InstallationChanged() | AccountRepositoryPushed():
                return await changes.of_account(event, self._desk)
            case _:
                return await self._asked(event)

    async def _asked(self, event: Remark | ApiAsked) -> Handled:
        if isinstance(event, ApiAsked):
            from bot.handlers import api_requests

            return await api_requests.handle(event, self._desk)
        return await remarks.handle(event, self._desk)


async def _of_checks(event: CheckAsked | CheckEnded, desk: Desk) -> Handled:
    if isinstance(event, CheckAsked):
        return await buttons.of_check_run(event, desk)
    desk.notices.tell(Topic.DASHBOARD, event.repo.id)
    return await ci_rounds.ended(event, desk)
