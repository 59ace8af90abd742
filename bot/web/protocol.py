"""uvicorn's HTTP protocol with the limits it lacks: how large a head may be, how long it may take, how many wait."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bot.web import overload


@dataclass(frozen=True)
class HeadLimits:
    most_bytes: int = 64 * 1024
    url_bytes: int = 16 * 1024
    headers: int = 200
    seconds: float = 20.0
    short_seconds: float = 0.5
    """On one of the last descriptors, which others wait for."""
    waiting: int = 400
    """Connections without a complete head; past it the one that waited longest is closed..."""
    patience: float = 2.0
    """...unless it is younger than this: a burst of real requests is accepted before any of them is read."""


class Connections:
    """Those of one server: which have not completed a head yet, oldest first, and when the last one has gone."""

    def __init__(self, limits: HeadLimits) -> None:
        self.limits = limits
        self._waiting: dict[GuardedProtocol, float] = {}
        self._one_lost = asyncio.Event()

    def add(self, connection: GuardedProtocol, now: float) -> None:
        if len(self._waiting) >= self.limits.waiting:
            oldest, since = next(iter(self._waiting.items()))
            if now - since >= self.limits.patience:
                oldest.give_up()
        if connection.short:
            self._make_room()
        self._waiting[connection] = now

    def _make_room(self) -> None:
        """Half of the last descriptors for who says nothing: asyncio must find one when it accepts."""
        silent = [one for one in self._waiting if one.short]
        if len(silent) >= overload.reserve() // 2:
            silent[0].give_up()

    def remove(self, connection: GuardedProtocol) -> None:
        self._waiting.pop(connection, None)

    def lost(self) -> None:
        self._one_lost.set()

    async def none_open(self, connections: Collection[object]) -> None:
        """Returns when the collection, which uvicorn keeps, is empty."""
        while connections:
            self._one_lost.clear()
            await self._one_lost.wait()


class BadHead(Exception):
    """Raised inside the parser's callbacks: uvicorn answers 400 and closes."""


class GuardedProtocol(HttpToolsProtocol):
    """Made by `guarded`, which binds the limits."""

    peers: Connections
    short = False
    """It has one of the last descriptors."""
    _timer: asyncio.TimerHandle | None = None
    _in_head = True
    _head_bytes = 0
    _url_bytes = 0
    _counted = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]  # uvicorn narrows the type
        if overload.few_left(transport.get_extra_info("socket").fileno()):
            self.short = True
            self.app = overload.Shedding(self.app)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_done()
        super().connection_lost(exc)
        self.peers.lost()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and not self.transport.is_closing() and self._head_bytes:
            if self._head_bytes > self.peers.limits.most_bytes:
                self.send_400_response("The head of the request is too large.")
            elif self._timer is None:  # a later request on a kept connection has begun
                self._await_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._url_bytes = 0
        self._counted = 0

    def on_url(self, url: bytes) -> None:
        """A path and nothing else: a whole address names a host of its own, beside the one in the header."""
        if b"#" in url or not (self._url_bytes or url.startswith(b"/")):
            raise BadHead
        self._url_bytes += len(url)
        if self._url_bytes > self.peers.limits.url_bytes:
            raise BadHead
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._counted += len(name) + len(value)
        limits = self.peers.limits
        if self._counted > limits.most_bytes or len(self.headers) >= limits.headers:
            raise BadHead
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_done()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = True  # of the next request, which need not come
        self._head_bytes = 0

    def give_up(self) -> None:
        """Nothing is lost: there is no request yet."""
        self._head_done()
        self.transport.abort()

    def _await_head(self) -> None:
        limits = self.peers.limits
        self._timer = self.loop.call_later(limits.short_seconds if self.short else limits.seconds, self.give_up)
        self.peers.add(self, self.loop.time())

    def _head_done(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self.peers.remove(self)


def guarded(connections: Connections) -> type[GuardedProtocol]:
    """A protocol class for one server."""
    return type("Guarded", (GuardedProtocol,), {"peers": connections})
