"""A session's page: the live conversation, its stream, its raw log, and the buttons to stop and to retry."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bot.handlers import buttons
from bot.handlers.desk import Desk
from bot.loops import beside
from bot.models import Person
from bot.sessions import declared_checks
from bot.store import conversation, packages
from bot.store.sessions import Session
from bot.store.tool_calls import counted
from bot.web.pages import downloads, visited
from bot.web.pages.conversation import ConversationEntry
from bot.web.pages.frame import COMMON
from bot.web.pages.gate import GONE, Act, Fields, Gate, Stay
from bot.web.pages.query import TranscriptQuery, next_failed
from bot.web.pages.reader import reader_of, times_of
from bot.web.pages.stream import EventStream, StreamLimit, event
from bot.web.pages.visitors import Visitor
from bot.web.pages.watch import MANY_ENTRIES, Watched, Watching

MOST_STREAMS = 3000
MOST_STREAMS_EACH = 40
LOG_PAGE = 100
MOST_PACKAGES = 1000


class SessionPages:
    def __init__(self, gate: Gate, desk: Desk, watching: Watching) -> None:
        self._gate = gate
        self._desk = desk
        self._watching = watching
        self._limit = StreamLimit(MOST_STREAMS, MOST_STREAMS_EACH)

    def routes(self) -> list[BaseRoute]:
        at = "/sessions/{id}"
        return [
            Route(at, self._gate.page(self._show)),
            Route(f"{at}/events", self._gate.plain(self._stream)),
            Route(f"{at}/times", self._gate.plain(self._times)),
            Route(f"{at}/log", self._gate.plain(self._log)),
            Route(f"{at}/checks", self._gate.plain(self._checks)),
            Route(f"{at}/stop", self._gate.form(self._pressing(buttons.press_stop)), methods=["POST"]),
            Route(f"{at}/retry", self._gate.form(self._pressing(buttons.press_retry)), methods=["POST"]),
        ]

    async def _show(self, request: Request, visitor: Visitor) -> Response:
        session = await visited.session_of(self._gate, request, visitor)
        watched = self._watching.of(session.id)
        await watched.refresh()
        if (failed_after := request.query_params.get("error")) is not None:
            return self._to(session, next_failed(watched.transcript.entries, failed_after))
        if (place := request.query_params.get("place")) is not None:
            return self._to(session, watched.entry_at(place))
        query = TranscriptQuery.of(request.query_params)
        reader = await reader_of(watched, query)
        thread, settings = session.thread, self._desk.settings
        permission = await self._gate.access.permission(visitor, visited.place_of(session))
        kind = "pull" if thread.is_pull else "issues"
        return self._gate.pages.render(
            "session.html",
            title=f"{thread.repo.full_name}#{thread.number}",
            visitor=visitor,
            session=session,
            thread_url=f"{settings.github.url}/{thread.repo.full_name}/{kind}/{thread.number}",
            thread_kind="Pull request" if thread.is_pull else "Issue",
            view=watched.overview,
            drawn=watched.drawn,
            calls=await counted(self._gate.store, session.id),
            reader=reader,
            query=query,
            may_write=permission.may_write,
            packages=await packages.of_session(self._gate.store, session.id, MOST_PACKAGES),
        )

    def _to(self, session: Session, entry: ConversationEntry | None) -> Response:
        """Lead on to the part of the page around an entry."""
        there = f"?at={entry.id}#{entry.id}" if entry is not None else ""
        return RedirectResponse(f"/sessions/{session.id}{there}", 303, COMMON)

    async def _times(self, request: Request, visitor: Visitor) -> Response:
        """Tell when each entry came and ended, for a replay."""
        session = await visited.session_of(self._gate, request, visitor)
        watched = self._watching.of(session.id)
        await watched.refresh()
        entries = watched.transcript.entries
        tell = partial(times_of, entries, watched.overview.look)
        told = await beside(tell, size=len(entries), most=MANY_ENTRIES)
        return Response(told, media_type="application/json", headers=COMMON)

    def _pressing(self, press: Callable[[Session, Person, Desk], Awaitable[object]]) -> Act:
        async def act(request: Request, visitor: Visitor, fields: Fields) -> Response:
            session = await visited.session_of(self._gate, request, visitor)
            await press(session, Person(visitor.id, visitor.login), self._desk)
            return RedirectResponse(f"/sessions/{session.id}", 303, COMMON)

        return act

    async def _log(self, request: Request, visitor: Visitor) -> Response:
        session = await visited.session_of(self._gate, request, visitor)

        async def lines() -> AsyncGenerator[bytes, None]:
            after = 0
            while rows := await conversation.events_of_session(self._gate.store, session.id, after, LOG_PAGE):
                after = rows[-1].seq
                yield "".join(f"{row.line}\n" for row in rows).encode()

        return downloads.download(f"forgehand-{session.id}.log", lines(), visited.stay(self._gate, visitor, session))

    async def _checks(self, request: Request, visitor: Visitor) -> Response:
        session = await visited.session_of(self._gate, request, visitor)
        files = await declared_checks.outputs_of(self._desk.files, session.id)
        name, stay = f"forgehand-{session.id}-checks.log", visited.stay(self._gate, visitor, session)
        return downloads.download(name, downloads.of_files(files), stay)

    async def _stream(self, request: Request, visitor: Visitor) -> Response:
        session = await visited.session_of(self._gate, request, visitor)
        if refusal := self._limit.refusal(visitor.id):
            return refusal
        watched = self._watching.of(session.id)
        await watched.refresh()
        given = request.headers.get("last-event-id") or request.query_params.get("after", "")
        after = int(given) if given.isascii() and given.isdecimal() and len(given) < 18 else 0
        return EventStream(
            self._limit.counted(visitor.id, _allowed(visited.stay(self._gate, visitor, session), watched, after))
        )


async def _allowed(stay: Stay, watched: Watched, after: int) -> AsyncGenerator[bytes, None]:
    """Check access again before each chunk."""
    async with aclosing(watched.stream(after)) as chunks:
        async for chunk in chunks:
            if not await stay.may_go_on():
                yield event("gone", GONE)
                return
            yield chunk
