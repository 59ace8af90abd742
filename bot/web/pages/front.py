"""The front page kept true while it is open: what stands in its lists, sent again when rows of it have changed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from bot.errors import TransientError
from bot.web.pages.frame import COMMON
from bot.web.pages.gate import Gate
from bot.web.pages.lists import Filters, Front, ListPages
from bot.web.pages.stream import EventStream
from bot.web.pages.visitors import Visitor
from bot.web.pages.watch import event

LOOK_SECONDS = 2.0
HEARTBEAT_LOOKS = 8
MOST_STREAMS = 200
MOST_STREAMS_EACH = 10
"""Each looks by itself, since each may see something else: fewer than of a session, whose viewers share one look."""
GONE = "You are no longer signed in."


@dataclass(frozen=True)
class _Picture:
    """What was seen, and what is to be known of it to tell that it has changed."""

    rows: object
    html: Markup


class FrontStream:
    def __init__(self, gate: Gate, lists: ListPages) -> None:
        self._gate = gate
        self._lists = lists
        self._streams: Counter[int] = Counter()
        self._closed = asyncio.Event()

    def routes(self) -> list[BaseRoute]:
        return [Route("/events", self._gate.plain(self._stream))]

    def close(self) -> None:
        self._closed.set()

    async def _stream(self, request: Request, visitor: Visitor) -> Response:
        if self._streams.total() >= MOST_STREAMS or self._streams[visitor.id] >= MOST_STREAMS_EACH:
            return PlainTextResponse("Too many pages are open.\n", 503, {**COMMON, "Retry-After": "30"})
        filters = Filters.of(request.query_params)
        await self._lists.front(visitor, filters)  # a wrong address is told as such, before the stream begins
        return EventStream(self._counted(visitor, filters))

    async def _counted(self, visitor: Visitor, filters: Filters) -> AsyncGenerator[bytes, None]:
        self._streams[visitor.id] += 1
        try:
            async for chunk in self._told(visitor, filters):
                yield chunk
        except TransientError:  # the browser comes back
            return
        finally:
            self._streams[visitor.id] -= 1

    async def _told(self, visitor: Visitor, filters: Filters) -> AsyncGenerator[bytes, None]:
        """GitHub is asked who may see what when something has changed, or is in doubt, and not before."""
        yield b"retry: 2000\n\n"
        seen, quiet = _Picture(None, Markup()), 0
        while not self._closed.is_set():
            if await self._gate.people.by_mark(visitor.mark) is None:
                yield event("gone", GONE)
                return
            rows = (await self._lists.rows(visitor, filters), self._gate.access.doubts(visitor.id))
            before, quiet = seen.html, quiet + 1
            if rows != seen.rows:
                seen = _Picture(rows, self._drawn(await self._lists.front(visitor, filters)))
            if seen.html != before:
                yield event("lists", seen.html)
                quiet = 0
            elif quiet % HEARTBEAT_LOOKS == 0:
                yield b": still here\n\n"
            await self._rest()

    def _drawn(self, front: Front) -> Markup:
        return self._gate.pages.fragment("home_lists.html", front=front)

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._closed.wait()
        except TimeoutError:
            return
