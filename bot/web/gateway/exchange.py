"""One admitted request: sends it to the provider, streams the answer through, and counts its cost."""

from __future__ import annotations

import asyncio
import functools
import math
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bot.errors import TransientError
from bot.models import TokenUsage
from bot.sessions.money import budget
from bot.sessions.money.budget import CacheUse, Estimate, Price
from bot.store.gateway import RequestSubject
from bot.store.spend import Settlement
from bot.web.gateway import clients, connection
from bot.web.gateway.connection import AnswerHead, Connection, ConnectionBroken, Landing
from bot.web.gateway.money import Reservation
from bot.web.gateway.providers import BrokenStream, ModelProvider, StreamForm
from bot.web.gateway.stream import Meter, OversizedEvent

CONNECT_SECONDS = 10.0
READ_SECONDS = 600.0
WRITE_SECONDS = 60.0
MAX_CONNECTIONS = 256
MOST_KEPT = 32
KEPT_SECONDS = 30.0
MAX_ERROR_BYTES = 64 << 10
MAX_WHOLE_BYTES = 32 << 20
UNREACHABLE = "The model's provider could not be reached."
BROKEN = "The answer of the model's provider broke off."
STRANGE = "The model's provider sent something that is not an answer."


class Unreachable(Exception):
    """No connection: nothing was sent."""


class ProviderAnswer:
    """An answer: its head, then `next` until it returns nothing. `next` raises ConnectionBroken if it breaks off."""

    def __init__(self, head: AnswerHead, connection: Connection, read_seconds: float) -> None:
        self.status = head.status
        self.headers = head.headers
        self._connection = connection
        self._read_seconds = read_seconds

    async def next(self) -> bytes:
        return await self._connection.next(self._read_seconds)

    async def whole(self, limit: int) -> bytes | None:
        """Return the body, or None if it is too large or breaks off."""
        parts: list[bytes] = []
        size = 0
        try:
            while burst := await self.next():
                size += len(burst)
                if size > limit:
                    return None
                parts.append(burst)
        except ConnectionBroken:
            return None
        return b"".join(parts)


class Upstream:
    """Keeps connections to the provider. It ignores proxy variables, which could carry the key to another host."""

    def __init__(self, url: str, read_seconds: float = READ_SECONDS) -> None:
        parts = urlsplit(url.rstrip("/"))
        self._tls = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port or (443 if self._tls else 80)
        self._name, self._path = parts.netloc.removesuffix(":"), parts.path
        self._read_seconds = read_seconds
        self._landing = Landing()
        self._room = asyncio.Semaphore(MAX_CONNECTIONS)
        self._kept: list[tuple[float, Connection]] = []  # the time when each became free, the oldest first

    @asynccontextmanager
    async def ask(self, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> AsyncIterator[ProviderAnswer]:
        """Raise Unreachable before sending, ConnectionBroken afterwards. Leaving early closes the connection."""
        head = connection.request(self._name, self._path + path, headers, len(body))
        async with self._connected() as line:
            await line.send(head, body, WRITE_SECONDS)
            del body
            yield ProviderAnswer(await line.head(self._read_seconds), line, self._read_seconds)

    async def close(self) -> None:
        for _, line in self._kept:
            line.close()
        self._kept.clear()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Connection]:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._room.acquire()
        except TimeoutError:
            raise Unreachable("every connection is in use") from None
        with ExitStack() as place:
            place.callback(self._room.release)
            line = self._free() or await self._connect(place)
            try:
                yield line
            finally:
                self._leave(line)

    async def _connect(self, place: ExitStack) -> Connection:
        """Connect. If the client leaves meanwhile, the attempt goes on and keeps its place until it ends: a cancelled
        race of addresses would forget a socket that is already connected."""
        opening = asyncio.ensure_future(self._open())
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(functools.partial(_let_go, place.pop_all()))
            raise
        except ssl.SSLCertVerificationError as error:
            raise Unreachable(f"its certificate is refused: {error.verify_message}") from None
        except (OSError, TimeoutError, UnicodeError) as error:  # UnicodeError: an invalid host name
            raise Unreachable(type(error).__name__) from None

    async def _open(self) -> Connection:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, line = await asyncio.get_running_loop().create_connection(
                lambda: Connection(self._landing),
                self._host,
                self._port,
                ssl=_tls() if self._tls else None,
                happy_eyeballs_delay=0.25,
            )
        return line

    def _free(self) -> Connection | None:
        """Take the one used last, which is the likeliest to live."""
        while self._kept:
            since, line = self._kept.pop()
            if line.is_free and asyncio.get_running_loop().time() - since < KEPT_SECONDS:
                return line
            line.close()
        return None

    def _leave(self, line: Connection) -> None:
        if not line.is_free:
            line.close()
            return
        self._kept.append((asyncio.get_running_loop().time(), line))
        while len(self._kept) > MOST_KEPT:
            self._kept.pop(0)[1].close()


def _let_go(place: ExitStack, opening: asyncio.Future[Connection]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
    place.close()


@functools.cache
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


@dataclass
class Order:
    asked: str  # the path of Anthropic's API
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    about: RequestSubject
    price: Price
    estimate: Estimate
    hidden: tuple[str, ...]  # values that no error may show
    on_sent: Callable[[], None]

    def sent(self) -> None:
        """Drop the body, because the answer may take minutes."""
        self.body = b""
        self.on_sent()


class Exchange:
    """Use it once: `run`, then `settlement`, whatever happened in between. Without a reservation it costs nothing."""

    def __init__(
        self, order: Order, provider: ModelProvider, upstream: Upstream, reservation: Reservation | None
    ) -> None:
        asked = order.estimate
        self._order = order
        self._provider = provider
        self._upstream = upstream
        self._reservation = reservation
        self._meter = Meter(
            most_output=asked.output_tokens, in_the_us=asked.in_the_us, cached_long=asked.cache is CacheUse.LONG
        )
        self._has_begun = False
        self._covered = (0, -1.0)
        """The meter's `price_changes` at the last look for money, and the output tokens that this money covers."""
        self._sent = False
        self.status: int | None = None
        self.complaint: tuple[str, str] | None = None
        """A trouble that the operator should know, and its evidence."""
        self.reason: str | None = None
        """Why the run ends, as people read it."""
        self._complete = False

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the client, without raising for anything that the provider or the network does."""
        self._sent = True
        try:
            async with self._upstream.ask(self._order.path, self._order.headers, self._order.body) as answer:
                self._order.sent()
                self.status = answer.status
                await self._answer(answer, scope, receive, send)
        except Unreachable as error:
            self._sent = False
            self.complaint = "the model's provider cannot be reached", str(error)
            await clients.error_response(502, UNREACHABLE)(scope, receive, send)
        except ConnectionBroken:
            await clients.error_response(502, BROKEN)(scope, receive, send)

    def settlement(self) -> Settlement:
        """Confirm the seen part of an answer. If its end was not seen, count the most that it may have become as
        unconfirmed: nobody knows when the provider stopped, nor how much it had thought by then."""
        if self._meter.finished:
            return Settlement(self._cost(), self._meter.consumption.usage, self.status)
        if not self._sent or self._complete:
            return Settlement(0.0, TokenUsage(), self.status, abandoned=not self._complete)
        seen, usage = (self._cost(), self._meter.consumption.usage) if self._meter.began else (0.0, TokenUsage())
        return Settlement(seen, usage, self.status, abandoned=True, unconfirmed_usd=max(self._most() - seen, 0.0))

    def _cost(self) -> float:
        return budget.cost(self._order.price, self._meter.consumption)

    def _most(self) -> float:
        """Keep the whole estimate if searches may still come, because nothing announces them."""
        asked = self._order.estimate
        if not self._meter.began or asked.searches:
            return asked.usd
        return budget.cost(self._order.price, self._meter.at_most(asked.output_tokens))

    async def _answer(self, answer: ProviderAnswer, scope: Scope, receive: Receive, send: Send) -> None:
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if answer.headers.get("content-encoding", "identity") != "identity":  # we asked for identity
            response = clients.error_response(502, STRANGE)
        elif answer.status == 200 and (form := self._provider.stream(kind)) is not None:
            await self._stream(answer, form, send)
            return
        elif answer.status == 200 and kind == "application/json":
            if (body := await answer.whole(MAX_WHOLE_BYTES)) is None:
                response = clients.error_response(502, STRANGE)
            else:
                self._meter.whole(body)
                turned = self._provider.whole(self._order.asked, body)
                response = Response(turned, 200, self._provider.returned(answer.headers), "application/json")
        else:
            response = await self._error(answer)
        await response(scope, receive, send)

    async def _stream(self, answer: ProviderAnswer, form: StreamForm, send: Send) -> None:
        headers = {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            "x-accel-buffering": "no",
            **self._provider.returned(answer.headers),
        }
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        async for chunk in self._chunks(answer, form):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _chunks(self, answer: ProviderAnswer, form: StreamForm) -> AsyncIterator[bytes]:
        """Yield the provider's events, then an error event if we or the network cut them."""
        try:
            while come := await answer.next():
                if not (chunk := form.feed(come)):
                    continue
                self._meter.feed(chunk)
                if self._reservation and self._meter.began and not self._has_begun:
                    self._has_begun = True
                    self._reservation.begun(self._most())
                if not await self._is_paid():
                    yield clients.error_event("invalid_request_error", clients.NO_CREDIT)
                    return
                yield chunk
            form.end()
        except (ConnectionBroken, OversizedEvent, BrokenStream):
            yield clients.error_event("api_error", BROKEN)
        except TransientError:  # of our own store: an answer without a recorded payer is not passed on
            yield clients.error_event("overloaded_error", clients.BUSY)

    async def _is_paid(self) -> bool:
        """Compare tokens for every chunk, and compute money only when they are used up."""
        meter, price = self._meter, self._order.price
        changes, tokens = self._covered
        is_covered = meter.price_changes == changes and meter.output_tokens <= tokens
        if self._reservation is None or meter.finished or is_covered:
            return True
        used = meter.consumption
        cost = budget.cost(price, used)
        left = await self._reservation.ceiling(cost) - cost
        each = budget.output_usd(price, used)
        self._covered = meter.price_changes, meter.output_tokens + (left / each if each else math.inf)
        return left >= 0

    async def _error(self, answer: ProviderAnswer) -> Response:
        body = await answer.whole(MAX_ERROR_BYTES)
        known = 400 <= answer.status < 600
        error = self._provider.error(answer.status, answer.headers, body) if known else None
        if error is None:
            self._complete = answer.status >= 300
            headers = self._provider.returned(answer.headers)
            return clients.error_response(answer.status if known else 502, STRANGE, headers)
        self._complete = True
        self.complaint, self.reason = error.complaint, error.reason
        return Response(scrub(error.body, self._order.hidden), error.status, error.headers, "application/json")


def scrub(body: bytes, hidden: tuple[str, ...]) -> bytes:
    for value in hidden:
        body = body.replace(value.encode(), b"[redacted]")
    return body
