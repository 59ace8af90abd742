"""Handles the gateway's clients: limits their requests, reads bodies under a cap and a deadline, and ends the work when
the client goes away or its token is revoked."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

log = logging.getLogger("bot.web.gateway")

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    415: "invalid_request_error",
    429: "rate_limit_error",
    502: "api_error",
    529: "overloaded_error",
}
NO_CREDIT = "Your credit balance is too low to access the Anthropic API: the budget is used up."
"""Begins with the API's own words, on which the client ends at once instead of trying again."""
BUSY = "Overloaded: what this costs cannot be written down at the moment."
NO_IDENTITY = "Overloaded: the provider's credential cannot be renewed at the moment."
FINAL = {"x-should-retry": "false"}
"""Keeps the client from trying again: after a 401 it would try eleven times in three minutes."""

COMPLAINT_SECONDS = 600.0
MOST_MISUSES = 40
"""After so many misuses the token is cut off; a well-behaved program causes none."""
MOST_REMEMBERED = 10_000
MOST_NAMED = 50
"""Names from agents that are logged, each once; an agent that invents more cannot fill the log."""
MISUSE = frozenset({"encoded", "feature", "field", "malformed", "model", "smuggled", "stalled", "too_large"})
STORM = "storm"
CUT_OFF = "The gateway has refused dozens of this turn's requests, so its token was cut off. Start the turn again."

MAX_BODY_BYTES = 32 << 20  # the limit of the provider's own API
MOST_OF_ONE = 64 << 20
MOST_OF_ALL = 128 << 20
ALWAYS_OF_ONE = 4 << 20
"""Each token may always send this much. Otherwise two slow senders could take all of the room."""
MOST_OF_INSTALLATION = 128  # requests at a time: half of the connections to the provider
READERS = 1
"""Bodies decoded at once: meanwhile each takes several times its size, and delays the others."""
ENDED = "The token of this turn was ended."

Take = Callable[[int], None]


class GatewayRefusal(Exception):
    """Ends a request; the metrics count it under `reason`."""

    def __init__(self, status: int, reason: str, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    def response(self) -> Response:
        headers = FINAL if self.retry_after is None else {"retry-after": str(self.retry_after)}
        return error_response(self.status, self.message, headers)


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    content = json.dumps(error_object(KINDS.get(status, "api_error"), message))
    return Response(content, status, headers, "application/json")


def error_object(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def error_event(kind: str, message: str) -> bytes:
    return f"event: error\ndata: {json.dumps(error_object(kind, message))}\n\n".encode()


async def closed(scope: Scope, receive: Receive, send: Send) -> None:
    """Stand in for the gateway at an address that no sandbox uses, and look at no token."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await GatewayRefusal(403, "closed", "No sandbox comes to this address.").response()(scope, receive, send)


def exhausted() -> GatewayRefusal:
    return GatewayRefusal(400, "budget", NO_CREDIT)


class RefusalWatch:
    """Counts refusals, finds misused tokens, and logs what the operator should know."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.refusals: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        """By kind: betas, fields and query parts that requests went on without."""
        self._clock = clock
        self._complained: OrderedDict[tuple[object, str], float] = OrderedDict()
        self._misuses: OrderedDict[str, int] = OrderedDict()
        self._named: set[str] = set()

    def refused(self, refusal: GatewayRefusal) -> None:
        self.refusals[refusal.reason] += 1
        log.info("gateway refused a request", extra={"reason": refusal.reason, "status": refusal.status})
        if refusal.reason == "field":
            self.complain("field", "an agent's request was refused", refusal.message)

    def misused(self, token_sha256: str, refusal: GatewayRefusal) -> bool:
        if refusal.reason not in MISUSE:
            return False
        count = self._misuses.pop(token_sha256, 0) + 1
        self._misuses[token_sha256] = count
        _bound(self._misuses)
        return count >= MOST_MISUSES

    def without(self, kind: str, names: Iterable[str]) -> None:
        """`kind` is `beta`, `field` or `query`; the agent's own names never become a metric's label."""
        for name in names:
            self.left_out[kind] += 1
            if name not in self._named and len(self._named) < MOST_NAMED:
                self._named.add(name)
                words = "the %s %r was left out of a request, because its cost is unknown; %s lets it through"
                log.warning(words, kind, name[:80], "FORGEHAND_GATEWAY_ALLOW")

    def complain(self, about: object, what: str, detail: str) -> None:
        """Log each trouble only now and then, because every request meets it."""
        now = self._clock()
        if now - self._complained.get((about, what), float("-inf")) < COMPLAINT_SECONDS:
            return
        self._complained[about, what] = now
        _bound(self._complained)
        log.error("%s (%s): %s", what, about, detail)


def _bound(kept: OrderedDict[Any, Any]) -> None:
    while len(kept) > MOST_REMEMBERED:
        kept.popitem(last=False)


@dataclass
class _Share:
    requests: int = 0
    held: int = 0
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)


class RequestPlace:
    """Holds the place of one request from before its body is read until it ends."""

    def __init__(self, room: Room, share: _Share) -> None:
        self._room = room
        self._share = share
        self._mine = 0

    def take(self, size: int) -> None:
        """Refuse if the token or all of them hold too much."""
        mine = self._share.held + size
        if mine > MOST_OF_ONE or (mine > ALWAYS_OF_ONE and self._room.held + size > MOST_OF_ALL):
            raise GatewayRefusal(429, "room", "Too much is being sent at once.", retry_after=1)
        self._add(size)

    def free(self) -> None:
        """Give the bytes back: the body was sent on."""
        self._add(-self._mine)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Read one body of each token at a time, so that no token waits long for another's."""
        async with self._share.reading, self._room.readers:
            yield

    def _add(self, size: int) -> None:
        self._mine += size
        self._share.held += size
        self._room.held += size


class Room:
    """Counts the requests and bytes of each token, each installation and all together: an agent may open a thousand
    connections at once."""

    def __init__(self) -> None:
        self.held = 0
        self.readers = asyncio.Semaphore(READERS)
        self._shares: dict[str, _Share] = {}
        self._of_installation: Counter[int] = Counter()

    @contextmanager
    def place(self, owner: str, most: int, installation: int) -> Iterator[RequestPlace]:
        share = self._shares.get(owner) or _Share()
        if share.requests >= most:
            raise too_many("turn")
        if self._of_installation[installation] >= MOST_OF_INSTALLATION:
            raise too_many("installation")
        self._shares[owner] = share
        share.requests += 1
        self._of_installation[installation] += 1
        place = RequestPlace(self, share)
        try:
            yield place
        finally:
            place.free()
            share.requests -= 1
            if not share.requests:
                del self._shares[owner]
            self._of_installation[installation] -= 1
            if not self._of_installation[installation]:
                del self._of_installation[installation]


def too_many(whose: str) -> GatewayRefusal:
    return GatewayRefusal(429, "concurrency", f"Too many requests of this {whose} are under way.", retry_after=1)


async def read_body(scope: Scope, receive: Receive, seconds: float, take: Take) -> bytes:
    """Raise GatewayRefusal, or ClientDisconnect if the client goes away first."""
    headers = {name.lower(): value for name, value in scope["headers"]}
    if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        raise GatewayRefusal(415, "encoded", "The request body must not be compressed.")
    too_large = GatewayRefusal(413, "too_large", "Request exceeds the maximum size")
    announced = headers.get(b"content-length", b"0")
    if not announced.isdigit() or int(announced) > MAX_BODY_BYTES:
        raise too_large
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout(seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                take(len(parts[-1]))
                if size > MAX_BODY_BYTES:
                    raise too_large
                more = message.get("more_body", False)
        return b"".join(parts)
    except TimeoutError:
        raise GatewayRefusal(408, "stalled", "The request body did not arrive in time.") from None


class Presence:
    """Watches a client and its token during the work. The answer goes through `send`, which notes how far it got."""

    def __init__(
        self, receive: Receive, send: Send, is_live: Callable[[], Awaitable[bool]], check_seconds: float
    ) -> None:
        self._receive = receive
        self._send = send
        self._is_live = is_live
        self._check_seconds = check_seconds
        self._started = False
        self._finished = False

    async def send(self, message: Message) -> None:
        self._started = True
        self._finished = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def during(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work; call it after the request's body was read."""

        async def until_gone() -> None:
            while (await self._receive())["type"] != "http.disconnect":
                pass

        async def until_revoked() -> None:
            while True:
                await asyncio.sleep(self._check_seconds)
                if not await self._is_live():
                    return

        working = asyncio.create_task(work)
        gone = asyncio.create_task(until_gone())
        ended = asyncio.create_task(until_revoked())
        try:
            await asyncio.wait({working, gone, ended}, return_when=asyncio.FIRST_COMPLETED)
            cut = ended.done() and not working.done() and not gone.done()
        finally:
            for task in (working, gone, ended):
                task.cancel()
            await asyncio.wait({working, gone, ended})
        if not working.cancelled():
            working.result()
        elif cut and not self._finished:
            await self._say_ended()

    async def _say_ended(self) -> None:
        kind = KINDS[401]
        if self._started:
            await self._send({"type": "http.response.body", "body": error_event(kind, ENDED)})
            return
        body = error_response(401, ENDED, FINAL)
        await self._send({"type": "http.response.start", "status": 401, "headers": body.raw_headers})
        await self._send({"type": "http.response.body", "body": bytes(body.body)})
