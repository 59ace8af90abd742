"""The page on which people with write access make and end the public link of a session."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bot.errors import NotAllowed, UserError
from bot.store import shares
from bot.store.sessions import Session
from bot.web.pages import origin, visited
from bot.web.pages.frame import COMMON
from bot.web.pages.gate import Fields, Gate
from bot.web.pages.share_access import DAYS, ShareAccess
from bot.web.pages.visitors import Visitor

FOR_WRITERS = "Only people with write access to the repository can make or end a public link."


class SharingPages:
    def __init__(self, gate: Gate, access: ShareAccess, public_url: str | None) -> None:
        self._gate = gate
        self._access = access
        self._known_at = origin.written(public_url)

    def routes(self) -> list[BaseRoute]:
        at = "/sessions/{id}/share"
        return [
            Route(at, self._gate.page(self._show)),
            Route(at, self._gate.form(self._make), methods=["POST"]),
            Route(f"{at}/end", self._gate.form(self._end), methods=["POST"]),
        ]

    async def _writers_session(self, request: Request, visitor: Visitor, *, fresh: bool = False) -> Session:
        session = await visited.session_of(self._gate, request, visitor)
        permission = await self._gate.access.permission(visitor, visited.place_of(session), fresh=fresh)
        if not permission.may_write:
            raise NotAllowed(FOR_WRITERS)
        return session

    async def _show(self, request: Request, visitor: Visitor) -> Response:
        return await self._page(visitor, await self._writers_session(request, visitor))

    async def _make(self, request: Request, visitor: Visitor, fields: Fields) -> Response:
        """Show the link once, on the page that answers the form."""
        session = await self._writers_session(request, visitor, fresh=True)
        days = fields.get("days", "")
        if days not in map(str, DAYS):
            return await self._page(visitor, session, wrong="Choose for how long the link shall work.")
        try:
            token, _ = await self._access.make(session, visitor, int(days), confirmed=fields.get("confirmed") == "yes")
        except UserError as error:
            return await self._page(visitor, session, wrong=str(error))
        return await self._page(visitor, session, link=f"{self._known_at or origin.base(request)}/shared/{token}")

    async def _end(self, request: Request, visitor: Visitor, fields: Fields) -> Response:
        session = await self._writers_session(request, visitor, fresh=True)
        await shares.end(self._gate.store, session.id, visitor.login)
        return RedirectResponse(f"/sessions/{session.id}/share", 303, COMMON)

    async def _page(self, visitor: Visitor, session: Session, *, link: str = "", wrong: str = "") -> Response:
        private = await self._access.is_private(session)
        return self._gate.pages.render(
            "share.html",
            status=422 if wrong else 200,
            title=f"Share the session of {session.thread.repo.full_name}#{session.thread.number}",
            visitor=visitor,
            session=session,
            share=await shares.of_session(self._gate.store, session.id),
            private=private,
            allowed=await self._access.allows(session, private=private),
            days=DAYS,
            link=link,
            wrong=wrong,
        )
