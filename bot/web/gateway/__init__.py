"""Lets agents in environments reach the model: takes a turn's token, and gives the provider the real credential.

Two paths, POST only. Everything that an agent sends counts as hostile, and it must never get the credential.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from bot.errors import BotError, TransientError
from bot.sessions.money import budget
from bot.sessions.money.budget import Prices, UnknownPrice
from bot.sessions.money.spending_limits import Ceilings
from bot.store import gateway as rows
from bot.store.base import Store
from bot.store.gateway import Grant, RequestSubject
from bot.web.gateway import clients, dialect, model_request
from bot.web.gateway.clients import STORM, GatewayRefusal, Presence, RefusalWatch, RequestPlace, Room, read_body
from bot.web.gateway.dialect import Credential, Dialect
from bot.web.gateway.exchange import READ_SECONDS, Exchange, Order, Upstream
from bot.web.gateway.money import Money
from bot.web.gateway.providers import COUNT_TOKENS, MESSAGES, AgentRequest, ModelProvider
from bot.web.gateway.providers.anthropic import AnthropicApi, Credentials

__all__ = ["AnthropicApi", "Ceilings", "Credential", "Credentials", "Dialect", "Gateway", "ModelProvider", "Tuning"]

log = logging.getLogger(__name__)

PREFIXES = ("/gateway/anthropic", "/anthropic")
PATHS = {prefix + path: path for prefix in PREFIXES for path in (MESSAGES, COUNT_TOKENS)}
QUERY = re.compile(rb"[A-Za-z0-9_=&.-]{0,200}")
ENDING = (401, 403)  # statuses that end the agent's client
TOLD = ("field",)  # reasons that may end it with another status


@dataclass(frozen=True)
class Tuning:
    """Tests shorten these times."""

    patience_seconds: float = 60.0
    """How long a request waits for others whose reserves hold the rest of the budget."""
    check_seconds: float = 1.0  # how soon a stream ends after its token was revoked
    read_seconds: float = READ_SECONDS
    body_seconds: float = 60.0


@dataclass(frozen=True)
class GatewayCaller:
    """Identifies a request's sender before its body is read."""

    path: str
    token: str
    sha256: str
    grant: Grant

    @property
    def payer(self) -> str:
        return f"installation {self.grant.installation}"


class Gateway:
    """An ASGI application; the metrics read `refusals` and `left_out`."""

    def __init__(  # noqa: PLR0913 - the composition root's one call
        self,
        store: Store,
        provider: ModelProvider,
        clock: Callable[[], float] = time.time,
        *,
        table: Prices | None = None,
        ceilings: Ceilings | None = None,
        tuning: Tuning | None = None,
        dialect: Dialect | None = None,
    ) -> None:
        self._store = store
        self._provider = provider
        self._clock = clock
        self._prices = table or Prices()
        self._tuning = tuning or Tuning()
        self._dialect = dialect or Dialect()
        self._room = Room()
        self._watch = RefusalWatch(clock)
        self.refusals, self.left_out = self._watch.refusals, self._watch.left_out
        self._upstream = Upstream(provider.url, self._tuning.read_seconds)
        self._money = Money(store, clock, ceilings, self._tuning.patience_seconds)

    def closing(self) -> None:
        """From now on no request waits for an absent store: its server would wait for it."""
        self._money.closing()

    async def close(self) -> None:
        """Settle what has ended and close the connections; call it after the last request."""
        await self._money.close()
        await self._upstream.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        caller: GatewayCaller | None = None
        try:
            with _while_the_store_answers():
                caller = await self._caller(scope)
            granted = caller.grant
            with self._room.place(caller.sha256, granted.concurrency, granted.installation) as place:
                order = await self._order(scope, receive, caller, place)
                presence = Presence(receive, send, lambda: self._is_live(caller), self._tuning.check_seconds)
                await presence.during(self._serve(caller, order, scope, receive, presence.send))
        except GatewayRefusal as refusal:
            await self._refuse(caller, refusal, scope, receive, send)
        except ClientDisconnect:
            return

    async def _caller(self, scope: Scope) -> GatewayCaller:
        path = _path(scope)
        token = dialect.token(scope["headers"])
        sha256 = rows.digest(token)
        granted = await rows.grant(self._store, sha256)
        if granted is None or granted.registries is not None:  # one for packages opens no model
            raise GatewayRefusal(401, "unknown", "invalid x-api-key")
        caller = GatewayCaller(path, token, sha256, granted)
        if not granted.is_live(self._clock()):
            await self._note(caller, ended := GatewayRefusal(401, "ended", "invalid x-api-key"))
            raise ended
        if granted.refused == STORM:
            raise GatewayRefusal(403, STORM, clients.CUT_OFF)
        return caller

    async def _is_live(self, caller: GatewayCaller) -> bool:
        try:
            granted = await rows.grant(self._store, caller.sha256)
        except TransientError:
            return True  # it is asked again in a moment
        return granted is not None and granted.is_live(self._clock())

    async def _order(self, scope: Scope, receive: Receive, caller: GatewayCaller, place: RequestPlace) -> Order:
        query = scope["query_string"].decode("latin-1")
        request = AgentRequest(caller.path, query, scope["headers"], caller.grant.installation)
        ask = await self._ask(scope, receive, caller, place, request)
        try:
            price = self._prices.of(ask.model)
        except UnknownPrice as unknown:
            raise GatewayRefusal(403, "price", str(unknown)) from None
        try:
            sent = await self._provider.outgoing(request, ask)
        except TransientError as error:
            self._watch.complain(caller.payer, "no credential for the model at the moment", str(error))
            raise GatewayRefusal(529, "credential", clients.NO_IDENTITY, retry_after=5) from None
        except BotError as error:
            self._watch.complain(caller.payer, "no credential for the model", str(error))
            raise GatewayRefusal(403, "credential", "There is no credential for the model.") from None
        betas, parts = self._provider.left_out(request)
        self._watch.without("beta", betas)
        self._watch.without("field", ask.left_out)
        self._watch.without("query", parts)
        return Order(
            asked=caller.path,
            path=sent.path,
            headers=sent.headers,
            body=sent.body,
            about=RequestSubject(ask.model, ask.question),
            price=price,
            estimate=budget.estimate(ask.sizes, price),
            hidden=(*sent.hidden, caller.token),
            on_sent=place.free,
        )

    async def _ask(
        self, scope: Scope, receive: Receive, caller: GatewayCaller, place: RequestPlace, request: AgentRequest
    ) -> model_request.CheckedRequest:
        """Read the body in a thread, because that may take long."""
        raw = await read_body(scope, receive, self._tuning.body_seconds, place.take)
        models, encoded = caller.grant.models, partial(self._provider.encode, request)
        async with place.reading():
            return await asyncio.to_thread(
                model_request.read, raw, allowed=models, dialect=self._dialect, encoded=encoded
            )

    async def _serve(self, caller: GatewayCaller, order: Order, scope: Scope, receive: Receive, send: Send) -> None:
        reservation = None
        try:
            with _while_the_store_answers():
                if caller.path == COUNT_TOKENS:
                    await self._money.count(caller.sha256)
                else:
                    reservation = await self._money.reserve(caller.sha256, order.about, order.estimate)
        except GatewayRefusal as refusal:
            await self._refuse(caller, refusal, scope, receive, send)
            return
        exchange = Exchange(order, self._provider, self._upstream, reservation)
        try:
            await exchange.run(scope, receive, send)
        finally:
            if exchange.complaint:
                self._watch.complain(caller.payer, *exchange.complaint)
            if exchange.reason:
                await self._note_reason(caller, exchange.reason)
            if reservation:
                await self._money.settle(reservation.claim.id, exchange.settlement())

    async def _note(self, caller: GatewayCaller, refusal: GatewayRefusal) -> None:
        """Store why a run ends: people see only the client's error, and would blame the provider."""
        reason = STORM if self._watch.misused(caller.sha256, refusal) else refusal.reason
        is_told = refusal.status in ENDING or reason in (*TOLD, STORM)
        if is_told:
            await self._note_reason(caller, reason)

    async def _note_reason(self, caller: GatewayCaller, reason: str) -> None:
        if caller.grant.refused == reason:
            return
        try:
            await rows.note_refusal(self._store, caller.sha256, reason, last=STORM)
        except TransientError as error:
            log.warning("a refusal was not noted", extra={"reason": reason, "error": str(error)})

    async def _refuse(
        self, caller: GatewayCaller | None, refusal: GatewayRefusal, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if caller:
            await self._note(caller, refusal)
        self._watch.refused(refusal)
        await refusal.response()(scope, receive, send)


def _path(scope: Scope) -> str:
    """Match the path as it was sent, before anything in it is decoded."""
    sent = (scope.get("raw_path") or scope["path"].encode("utf-8", "surrogateescape")).decode("latin-1")
    if any(mark in sent for mark in ("%", "\\", "//", "..", ";")):
        raise GatewayRefusal(400, "path", "The path must be written plainly.")
    path = PATHS.get(sent)
    if path is None or scope["method"] != "POST":
        raise GatewayRefusal(404, "path", "Not found")
    if not QUERY.fullmatch(scope["query_string"]):
        raise GatewayRefusal(400, "path", "The query must be written plainly.")
    return path


@contextmanager
def _while_the_store_answers() -> Iterator[None]:
    try:
        yield
    except TransientError as error:
        log.warning("a request waits for the store", extra={"error": str(error)})
        raise GatewayRefusal(529, "store", clients.BUSY, retry_after=round(error.retry_after or 5)) from None
