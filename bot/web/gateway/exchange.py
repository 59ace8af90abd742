"""One admitted request: sends it on, streams the answer through as it comes, and knows at any time what it costs."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bot.models import Usage
from bot.sessions.money import prices
from bot.sessions.money.budget import Estimate
from bot.sessions.money.prices import Price
from bot.store.spend import Settlement
from bot.web.gateway import errors, hop_headers
from bot.web.gateway.bursts import Bursts
from bot.web.gateway.stream import Meter, OversizedEvent
from bot.web.gateway.upstream import Upstream

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

MAX_ERROR_BYTES = 64 << 10
MAX_WHOLE_BYTES = 32 << 20
UNREACHABLE = "The model's provider could not be reached."
BROKEN = "The answer of the model's provider broke off."
STRANGE = "The model's provider sent something that is not an answer."

MaySpend = Callable[[float], Awaitable[bool]]
"""Whether the request may go on, having cost this much."""


@dataclass(frozen=True)
class Order:
    """What to send, and what it was estimated to cost."""

    path: str
    headers: list[tuple[str, str]]
    body: bytes
    price: Price
    estimate: Estimate
    hidden: tuple[str, ...]
    """Values that no answer may carry."""


class Exchange:
    """Use once: `run`, then `settlement`, whatever happened in between."""

    def __init__(self, order: Order, upstream: Upstream, may_spend: MaySpend) -> None:
        self._order = order
        self._upstream = upstream
        self._may_spend = may_spend
        self._meter = Meter()
        self._sent = False
        self.status: int | None = None
        """The provider's."""
        self.complaint: str | None = None
        """What the operator should hear of."""
        self._complete = False

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers the client. Never raises for what the provider or the network does."""
        import httpx

        request = self._upstream.request(self._order.path, self._order.headers, self._order.body)
        try:
            self._sent = True
            response = await self._upstream.client.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            self._sent = False
            await errors.error_response(502, UNREACHABLE)(scope, receive, send)
            return
        except httpx.HTTPError:
            await errors.error_response(502, BROKEN)(scope, receive, send)
            return
        try:
            self.status = response.status_code
            await self._answer(response, scope, receive, send)
        finally:
            await response.aclose()

    def settlement(self) -> Settlement:
        """With nothing seen of an answer that may have been made, its estimated input is counted."""
        if self._meter.began:
            usage = self._meter.consumption.usage
            return Settlement(self._cost(), usage, self.status, abandoned=not self._meter.finished)
        if not self._sent or self._complete:
            return Settlement(0.0, Usage(), self.status, abandoned=not self._complete)
        return Settlement(self._order.estimate.input_usd, Usage(), self.status, abandoned=True)

    def _cost(self) -> float:
        return prices.cost(self._order.price, self._meter.consumption)

    async def _answer(self, response: httpx.Response, scope: Scope, receive: Receive, send: Send) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code == 200 and kind == "text/event-stream":
            await self._stream(response, send)
        elif response.status_code == 200 and kind == "application/json":
            await (await self._whole(response))(scope, receive, send)
        else:
            await (await self._error(response))(scope, receive, send)

    async def _stream(self, response: httpx.Response, send: Send) -> None:
        headers = {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            "x-accel-buffering": "no",
            **hop_headers.returned(response.headers),
        }
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        async with Bursts(response.aiter_bytes()) as bursts:
            async for chunk in self._chunks(bursts):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _chunks(self, bursts: Bursts) -> AsyncIterator[bytes]:
        """The provider's bytes, and an error event at the end where we or the network had to cut them."""
        import httpx

        try:
            while chunk := await bursts.next():
                self._meter.feed(chunk)
                if not self._meter.finished and not await self._may_spend(self._cost()):
                    yield errors.error_event("invalid_request_error", errors.NO_CREDIT)
                    return
                yield chunk
        except (httpx.HTTPError, OversizedEvent):
            yield errors.error_event("api_error", BROKEN)

    async def _whole(self, response: httpx.Response) -> Response:
        body = await _bounded(response, MAX_WHOLE_BYTES)
        if body is None:
            return errors.error_response(502, STRANGE)
        self._meter.whole(body)
        return Response(body, 200, hop_headers.returned(response.headers), "application/json")

    async def _error(self, response: httpx.Response) -> Response:
        headers = hop_headers.returned(response.headers)
        body = await _bounded(response, MAX_ERROR_BYTES)
        if response.status_code < 400 or body is None or not body.lstrip().startswith(b"{"):
            self._complete = response.status_code >= 300
            status = response.status_code if response.status_code >= 400 else 502
            return errors.error_response(status, STRANGE, headers)
        self._complete = True
        if response.status_code in (401, 403):
            self.complaint = "the model's provider refuses the credential"
            headers.update(errors.FINAL)
        elif b"credit balance" in body:
            self.complaint = "the credit at the model's provider is used up"
        return Response(scrub(body, self._order.hidden), response.status_code, headers, "application/json")


def scrub(body: bytes, hidden: tuple[str, ...]) -> bytes:
    for value in hidden:
        body = body.replace(value.encode(), b"[redacted]")
    return body


async def _bounded(response: httpx.Response, limit: int) -> bytes | None:
    """The whole body, or None when it is too large or breaks off."""
    import httpx

    parts: list[bytes] = []
    size = 0
    try:
        async for chunk in response.aiter_bytes():
            size += len(chunk)
            if size > limit:
                return None
            parts.append(chunk)
    except httpx.HTTPError:
        return None
    return b"".join(parts)
