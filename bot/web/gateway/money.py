"""Money at the gateway: reserved before a request, increased while it streams, and settled at its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from bot.errors import TransientError
from bot.models import TokenUsage
from bot.sessions.money import budget
from bot.sessions.money.budget import BudgetDecision, Estimate, Ledger
from bot.sessions.money.spending_limits import Ceilings
from bot.store import gateway as rows
from bot.store import spend
from bot.store.base import Store
from bot.store.gateway import GatewayClaim, RequestContext, RequestSubject
from bot.store.spend import Settlement
from bot.web.gateway import clients
from bot.web.gateway.clients import GatewayRefusal, too_many

log = logging.getLogger(__name__)

T = TypeVar("T")
AGAIN_SECONDS = 2.0


class _Undecided(Exception):
    """Open requests decide whether money is left."""


@dataclass
class Reservation:
    """The money that one request may spend without asking again."""

    money: Money
    claim: GatewayClaim
    reserved_usd: float
    ceiling_usd: float

    def begun(self, most_usd: float) -> None:
        """Take note of the most it can cost, now that the provider has stated the input's cost."""
        self.money.narrow(self, most_usd)

    async def ceiling(self, cost_usd: float) -> float:
        return await self.money.ceiling(self, cost_usd)


class Money:
    """Shared by all requests of the process, so that the end of one wakes those that wait for money."""

    def __init__(self, store: Store, clock: Callable[[], float], ceilings: Ceilings | None, patience: float) -> None:
        self._store = store
        self._clock = clock
        self._ceilings = ceilings
        self._patience = patience
        self._ended = asyncio.Event()
        self._closing = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def reserve(self, token_sha256: str, about: RequestSubject, estimate: Estimate) -> Reservation:
        """Refuse a request without money. If open requests hold it, wait for them, at most `patience` seconds."""
        give_up = asyncio.get_running_loop().time() + self._patience
        while True:
            ended = self._ended
            with contextlib.suppress(_Undecided):
                return await self._reserve_once(replace(self._claim(token_sha256, estimate.usd), about=about))
            try:
                async with asyncio.timeout_at(give_up):
                    await ended.wait()
            except TimeoutError:
                words = "Requests under way hold the rest of the budget."
                raise GatewayRefusal(429, "busy", words, retry_after=5) from None

    async def count(self, token_sha256: str) -> None:
        """Record a request that costs nothing."""
        if await rows.count_request(self._store, self._claim(token_sha256, 0.0), self._check_for_count) is None:
            raise _unknown()

    def narrow(self, reservation: Reservation, most_usd: float) -> None:
        """Give back what the request can no longer cost. The stream does not wait for it."""
        less = reservation.reserved_usd - most_usd
        if less > 0:
            reservation.reserved_usd = most_usd
            self._start(self._narrow(reservation.claim.id, less))

    async def ceiling(self, reservation: Reservation, cost_usd: float) -> float:
        """Return how much a request may cost in all that has cost this much; less than that if it must end. It passes
        its reserve only if the provider exceeds what the request allowed."""
        if cost_usd <= reservation.ceiling_usd:
            return reservation.ceiling_usd
        more = max(0.0, cost_usd - reservation.reserved_usd)
        left = 0.0

        def judge(context: RequestContext) -> None:
            nonlocal left
            left = budget.left(self._ledgers(context))
            if cost_usd >= left or not context.grant.is_live(self._clock()):
                raise clients.exhausted()

        claim = self._claim(reservation.claim.token_sha256, more, reservation.claim.id)
        try:
            found = await rows.reserve_more(self._store, claim, judge)
        except GatewayRefusal:
            return -math.inf
        if found is None:
            return -math.inf
        reservation.reserved_usd += more
        reservation.ceiling_usd = min(reservation.reserved_usd, left)
        return reservation.ceiling_usd

    async def settle(self, claim_id: str, end: Settlement) -> None:
        """Settle even if the calling task is cancelled."""
        await asyncio.shield(self._start(self._settle(claim_id, end)))

    def closing(self) -> None:
        """Wait for an absent store no longer."""
        self._closing.set()

    async def close(self) -> None:
        """End what waits; the next start settles the whole reserve of what cannot be settled now."""
        self._closing.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _settle(self, claim_id: str, end: Settlement) -> None:
        """Try until the store takes it: a leftover reserve would block others as long as the service runs."""
        while True:
            try:
                await spend.settle(self._store, claim_id, end)
                break
            except TransientError as error:
                if self._closing.is_set():
                    raise
                log.warning("what a request has cost could not be written down yet", extra={"error": str(error)})
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), AGAIN_SECONDS)
        self._wake()

    async def _narrow(self, claim_id: str, less_usd: float) -> None:
        try:
            await spend.narrow(self._store, claim_id, less_usd)
        except TransientError:  # it stays reserved until the request is settled
            return
        self._wake()

    def _wake(self) -> None:
        """Let those that wait for money look again."""
        ended, self._ended = self._ended, asyncio.Event()
        ended.set()

    async def _reserve_once(self, claim: GatewayClaim) -> Reservation:
        left = 0.0

        def judge(context: RequestContext) -> None:
            nonlocal left
            self._check(context)
            left = budget.left(self._ledgers(context))

        reserving = self._start(rows.reserve(self._store, claim, judge))
        try:
            found = await asyncio.shield(reserving)
        except asyncio.CancelledError:
            self._start(self._undo(reserving, claim))
            raise
        if found is None:
            raise _unknown()
        return Reservation(self, claim, claim.reserve_usd, min(claim.reserve_usd, left))

    async def _undo(self, reserving: asyncio.Task[Any], claim: GatewayClaim) -> None:
        """Release a reserve whose client left while it was written."""
        await asyncio.wait({reserving})
        if reserving.exception() is not None:
            return
        await self._settle(claim.id, Settlement(0.0, TokenUsage(), None, abandoned=True))

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _check(self, context: RequestContext) -> None:
        """Judge in the transaction that reserves. Money comes first: without it, waiting for a place is pointless."""
        self._check_for_count(context)
        if context.turn.open >= context.grant.concurrency:
            raise too_many("turn")
        if budget.decide(self._ledgers(context)) is BudgetDecision.WAIT:
            raise _Undecided

    def _check_for_count(self, context: RequestContext) -> None:
        granted = context.grant
        if not granted.is_live(self._clock()):
            raise _unknown()
        if budget.decide(self._ledgers(context)) is BudgetDecision.EXHAUSTED:
            raise clients.exhausted()
        if granted.requests >= granted.max_requests:
            raise GatewayRefusal(403, "requests", "The number of requests of this turn is used up.")

    def _ledgers(self, context: RequestContext) -> list[Ledger]:
        """Return the session's ledger, the turn's, and those of days and months. With no limit on session and turn, the
        turn's allows nothing."""
        session = self._ceilings.of_session(context.session) if self._ceilings else None
        found = [session] if session else []
        if context.grant.budget_usd or not found:
            found.append(Ledger(context.turn.counted_usd, context.turn.reserved_usd, context.grant.budget_usd))
        if self._ceilings is None:
            return found
        return [*found, *(ledger for _, ledger in self._ceilings.narrowed(context.own).ledgers(context.windows))]

    def _claim(self, token_sha256: str, usd: float, claim_id: str | None = None) -> GatewayClaim:
        windows = self._ceilings.windows(self._clock()) if self._ceilings else ()
        return GatewayClaim(claim_id or rows.new_claim_id(), token_sha256, usd, windows)


def _unknown() -> GatewayRefusal:
    return GatewayRefusal(401, "ended", "invalid x-api-key")
