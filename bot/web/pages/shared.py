"""The pages behind a public link: transcript and changes for strangers, redacted, without forms and scripts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot.errors import BotError, Hidden, TransientError
from bot.outbound.redact import Redactor
from bot.store import sessions
from bot.store.sessions import Session
from bot.web.pages import redacting
from bot.web.pages.changes import ChangesPictures, chosen_turn
from bot.web.pages.conversation import ConversationEntry, EntryContent
from bot.web.pages.frame import Pages
from bot.web.pages.gate import Endpoint
from bot.web.pages.share_access import RateLimit, ShareAccess
from bot.web.pages.watch import Watching

log = logging.getLogger(__name__)

PER_MINUTE, PER_MINUTE_EACH = 600, 60
MOST_LIMITS = 1_000
MOST_ENTRIES = 1_000
MOST_HTML = 2 << 20
MOST_KEPT = 16 << 20
"""In characters: the drawn entries kept for the next visitor."""
ENDED = "This link shows nothing: it has ended, or never led anywhere."
Show = Callable[[Request, Session], Awaitable[Response]]


class SharedPages:
    def __init__(
        self, pages: Pages, access: ShareAccess, watching: Watching, pictures: ChangesPictures, redactor: Redactor
    ) -> None:
        self._pages = pages
        self._access = access
        self._watching = watching
        self._pictures = pictures
        self._redactor = redactor
        self._limit = RateLimit(PER_MINUTE)
        self._limits: dict[str, RateLimit] = {}
        self._drawn: dict[tuple[str, str, int], Markup] = {}
        self._size = 0
        self._version = redactor.version
        self._drawing = asyncio.Lock()

    def routes(self) -> list[BaseRoute]:
        at = "/shared/{token}"
        return [Route(at, self._open(self._transcript)), Route(f"{at}/changes", self._open(self._changes))]

    def _open(self, show: Show) -> Endpoint:
        async def answer(request: Request) -> Response:
            token = str(request.path_params["token"])
            try:
                share = await self._access.found(token)  # a wrong token takes no one's turn
                if not self._limit.take():
                    return self._said("Too many people look at public links. Please try again in a minute.", 429)
                if len(self._limits) >= MOST_LIMITS:
                    self._limits.clear()
                if not self._limits.setdefault(share.session_id, RateLimit(PER_MINUTE_EACH)).take():
                    return self._said("This link is opened too often. Please try again in a minute.", 429)
                return await show(request, await self._access.opened(share))
            except Hidden:
                return self._said(ENDED, 404)
            except TransientError as error:
                log.warning("a public link waits", extra={"error": str(error)})
                return self._said("This cannot be shown right now. Please try again in a minute.", 503)
            except BotError as error:
                log.warning("a public link failed", extra={"error": str(error)})
                return self._said(ENDED, 404)

        return answer

    async def _transcript(self, request: Request, session: Session) -> Response:
        watched = self._watching.of(session.id)
        await watched.refresh()
        turns = await sessions.turns_of(self._access.store, session.id)
        transcript, size = watched.transcript, 0
        entries = transcript.entries[-MOST_ENTRIES:]
        contents = await transcript.contents(entries)
        drawn: list[tuple[int, Markup]] = []
        async with self._drawing:
            for entry in reversed(entries):
                html = await self._entry(session, entry, contents[entry.id])
                if (size := size + len(html)) > MOST_HTML:
                    break
                drawn.append((entry.turn, html))
        left_out = transcript.talk.dropped + len(transcript.entries) - len(drawn)
        shown = [await asyncio.to_thread(redacting.turn, self._redactor, one) for one in turns]
        chapters = [{"turn": one, "entries": [html for n, html in drawn[::-1] if n == one.n]} for one in shown]
        return self._render(request, session, "shared.html", chapters=chapters, left_out=left_out)

    async def _entry(self, session: Session, entry: ConversationEntry, content: EntryContent) -> Markup:
        """Redact again: since the line was stored, more secrets may be known."""
        if self._version != self._redactor.version:
            self._version, self._size = self._redactor.version, 0
            self._drawn.clear()
        key = session.id, entry.id, entry.changed
        if (known := self._drawn.pop(key, None)) is not None:
            self._drawn[key] = known  # the latest use is at the end
            return known
        clean, body = await asyncio.to_thread(redacting.entry, self._redactor, entry, content)
        html = await asyncio.to_thread(self._pages.fragment, "entry.html", entry=clean, content=body)
        self._drawn[key] = html
        self._size += len(html)
        while self._size > MOST_KEPT:
            self._size -= len(self._drawn.pop(next(iter(self._drawn))))
        return html

    async def _changes(self, request: Request, session: Session) -> Response:
        turns = await self._pictures.turns(session.id)
        n = chosen_turn(request, turns)
        body, _ = await self._pictures.draw(session.id, n, at=_at(request), public=self._redactor)
        return self._render(request, session, "shared_changes.html", turns=turns, n=n, body=body)

    def _render(self, request: Request, session: Session, template: str, **values: object) -> Response:
        title = f"{session.thread.repo.full_name}#{session.thread.number}"
        given = {**values, "title": title, "visitor": None, "at": _at(request), "may_write": False}
        return self._pages.public(template, given)

    def _said(self, words: str, status: int) -> Response:
        given = {"title": "Shared session", "visitor": None, "words": words, "mood": "bad", "next": ""}
        return self._pages.public("said.html", given, status=status)


def _at(request: Request) -> str:
    return f"/shared/{request.path_params['token']}"
