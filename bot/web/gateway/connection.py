"""One connection to the model's provider: sends a request, and passes the answer on as fast as its reader takes it.

Every chunk of every stream passes here. So httptools (in C) parses it, and chunks that wait are taken as one piece.
"""

from __future__ import annotations

import asyncio
import re
import select
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import httptools

MOST_BYTES = 16 << 10
"""Held of one stream, and given out at a time; beyond that its sender waits. It is small because a burst is paid for as
a whole before it is passed on. Over TLS asyncio holds up to 256 KiB more."""
MOST_BESIDE_BYTES = 64 << 10
"""In a row outside a body: heads, also of interim answers, and trailers."""
SLICE = 256 << 10
_BREAK = re.compile(r"[\r\n\0]")


class ConnectionBroken(Exception):
    """The connection ended early, or what came over it is no answer."""


@dataclass(frozen=True)
class AnswerHead:
    status: int
    headers: dict[str, str]  # by their names in lower case


class Landing:
    """The buffer for all connections of a loop, because each parses what arrived before anything else is read."""

    def __init__(self) -> None:
        self._view = memoryview(bytearray(MOST_BYTES))

    def room(self, sizehint: int) -> memoryview:
        """Make room for all that is there: at the end of a TLS connection asyncio reads once and drops the rest. Return
        a view, because asyncio writes further records into a slice, and slicing a bytearray copies it."""
        if sizehint > len(self._view):
            self._view = memoryview(bytearray(sizehint))
        return self._view

    def come(self, size: int) -> memoryview:
        return self._view[:size]


class News:
    """Wakes a reader. All waits share one timer: a timer for each chunk of a stream would cost as much as the chunk."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._awaited: asyncio.Future[None] | None = None
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def later(self, seconds: float) -> float:
        return self._loop.time() + seconds

    async def wait(self, until: float) -> None:
        """Raise TimeoutError if nothing came."""
        self._until = until
        if self._timer is None or self._timer.when() > until:
            self.close()
            self._timer = self._loop.call_at(until, self._look)
        self._awaited = self._loop.create_future()
        try:
            await self._awaited
        finally:
            self._awaited = None

    def come(self) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """End the current wait, or set the timer again: it may be from an earlier wait."""
        self._timer = None
        if self._awaited is None or self._awaited.done():
            return
        if self._loop.time() < self._until:
            self._timer = self._loop.call_at(self._until, self._look)
        else:
            self._awaited.set_exception(TimeoutError())


class Connection(asyncio.BufferedProtocol):
    """Carries one exchange after the other: `send`, `head`, then `next` until it returns nothing."""

    def __init__(self, landing: Landing) -> None:
        self._landing = landing
        self._news = News()
        self._writable = asyncio.Event()
        self._writable.set()
        self._lost = False
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._head: AnswerHead | None = None
        self._beside = 0
        self._taken: list[bytes] = []
        self._size = 0
        self._sent = False
        self._complete = False
        self._keeps = False
        self._error: str | None = None

    @property
    def is_free(self) -> bool:
        """Decide whether another exchange may follow: request and answer are complete, and both sides keep the
        connection. After half a request, the next one would be read as its rest; an untaken answer blocks the next."""
        whole = self._sent and self._complete and self._error is None
        return whole and not self._taken and self._keeps and not self._lost and not self._has_news()

    async def send(self, head: bytes, body: bytes, seconds: float) -> None:
        """Send each piece within the time; stop if the answer comes early."""
        self._begin()
        self._transport.write(head)
        for start in range(0, len(body), SLICE):
            self._transport.write(body[start : start + SLICE])
            try:
                async with asyncio.timeout(seconds):
                    await self._writable.wait()
            except TimeoutError:
                raise _too_long() from None
            if self._head is not None or self._lost:
                return
        self._sent = True

    async def head(self, seconds: float) -> AnswerHead:
        until = self._news.later(seconds)
        while self._head is None:
            await self._more(until)
        return self._head

    async def next(self, seconds: float) -> bytes:
        """Return what has come since, and nothing at the end. Raise a break only after all that came before it."""
        if not self._taken:
            until = self._news.later(seconds)  # for the whole wait: what wakes it may not be body
            while not self._taken and not self._complete:
                await self._more(until)
        come = b"".join(self._taken)
        burst, rest = come[:MOST_BYTES], come[MOST_BYTES:]
        self._taken, self._size = [rest] if rest else [], len(rest)
        if self._size < MOST_BYTES:
            self._transport.resume_reading()
        return burst

    def close(self) -> None:
        self._transport.abort()

    def _has_news(self) -> bool:
        """Look for bytes, usually the connection's end, that the event loop has not reported yet."""
        socket = self._transport.get_extra_info("socket")
        if self._transport.is_closing() or socket is None:
            return True
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        return bool(poll.poll(0))

    async def _more(self, until: float) -> None:
        if self._error is not None or self._lost:
            raise ConnectionBroken(self._error or "the connection was closed")
        try:
            await self._news.wait(until)
        except TimeoutError:
            raise _too_long() from None

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._landing.room(sizehint)

    def buffer_updated(self, size: int) -> None:
        self._beside += size
        try:
            self._parser.feed_data(self._landing.come(size))
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"what came is no answer ({type(error).__name__})")
        if self._beside > MOST_BESIDE_BYTES:
            self._fail("too much of the answer is no body")
        if self._size >= MOST_BYTES:
            self._transport.pause_reading()
        self._news.come()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True
        if error is None and self._error is None and self._head is not None:
            ends_here = not {"content-length", "transfer-encoding"} & self._head.headers.keys()
            self._complete = self._complete or (ends_here and self._was_ended())
        self._writable.set()
        self._news.come()
        self._news.close()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # Called by the parser

    def on_message_begin(self) -> None:
        if self._complete:
            raise ConnectionBroken("more came than was asked for")  # httptools reads no further then

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is None:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200:
            named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._headers}
            self._head = AnswerHead(status, named)
            self._keeps = self._parser.should_keep_alive()
            self._writable.set()  # a provider that answers early may not read the rest
        self._headers = []

    def on_body(self, body: bytes) -> None:
        self._beside = 0
        self._taken.append(body)
        self._size += len(body)

    def on_message_complete(self) -> None:
        self._complete = self._head is not None  # otherwise it was an interim answer

    def _was_ended(self) -> bool:
        """Tell an end by the provider from a cut by anyone else. Only TLS can."""
        try:
            return self._tls is None or not self._tls.read(1)
        except ssl.SSLError as error:
            return isinstance(error, ssl.SSLZeroReturnError)

    def _fail(self, words: str) -> None:
        self._error = self._error or words
        self._transport.abort()


def request(host: str, path: str, headers: Sequence[tuple[str, str]], size: int) -> bytes:
    """Build the head of a POST; raise ValueError if a line contains a break."""
    lines = [f"POST {path} HTTP/1.1", f"host: {host}", *(f"{name}: {value}" for name, value in headers)]
    if any(_BREAK.search(line) for line in lines):
        raise ValueError("a header or the path has a line break in it")
    return "\r\n".join([*lines, f"content-length: {size}", "", ""]).encode("latin-1")


def _too_long() -> ConnectionBroken:
    return ConnectionBroken("it took too long")
