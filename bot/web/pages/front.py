"""Keeps an open front page up to date: sends its lists again when their rows have changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot.web.pages.gate import Gate
from bot.web.pages.lists import Filters, ListPages
from bot.web.pages.stream import EventStream, StreamLimit, event, is_set_within
from bot.web.pages.visitors import Visitor

LOOK_SECONDS = 2.0
HEARTBEAT_LOOKS = 8
MOST_STREAMS = 200
MOST_STREAMS_EACH = 10
"""Fewer than for a session, whose viewers share one look: here each person may see something else."""
GONE = "You are no longer signed in."


class FrontStream:
    def __init__(self, gate: Gate, lists: ListPages) -> None:
        self._gate = gate
        self._lists = lists
        self._limit = StreamLimit(MOST_STREAMS, MOST_STREAMS_EACH)
        self._closed = asyncio.Event()

    def routes(self) -> list[BaseRoute]:
        return [Route("/events", self._gate.plain(self._stream))]

    def close(self) -> None:
        self._closed.set()

    async def _stream(self, request: Request, visitor: Visitor) -> Response:
        if refusal := self._limit.refusal(visitor.id):
            return refusal
        filters = Filters.of(request.query_params)
        await self._lists.front(visitor, filters)  # a wrong address is refused before the stream begins
        return EventStream(self._limit.counted(visitor.id, self._changes(visitor, filters)))

    async def _changes(self, visitor: Visitor, filters: Filters) -> AsyncGenerator[bytes, None]:
        """Ask GitHub who may see what only after something has changed or is in doubt."""
        yield b"retry: 2000\n\n"
        seen: object = None
        html, quiet = Markup(), 0
        while not self._closed.is_set():
            if await self._gate.people.by_mark(visitor.mark) is None:
                yield event("gone", GONE)
                return
            rows = (await self._lists.rows(visitor, filters), self._gate.access.doubts(visitor.id))
            before, quiet = html, quiet + 1
            if rows != seen:
                front = await self._lists.front(visitor, filters)
                seen, html = rows, self._gate.pages.fragment("home_lists.html", front=front)
            if html != before:
                yield event("lists", html)
                quiet = 0
            elif quiet % HEARTBEAT_LOOKS == 0:
                yield b": still here\n\n"
            await is_set_within(LOOK_SECONDS, self._closed)
