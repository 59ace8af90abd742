"""Every page for people passes here: who looks, whether the form is theirs, and how errors are shown."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bot.errors import BotError, Hidden, NotAllowed, TransientError
from bot.store.base import Store
from bot.web.pages import forms, visitors
from bot.web.pages.access import Place, VisitorAccess
from bot.web.pages.frame import COMMON, Pages
from bot.web.pages.operators import Operators
from bot.web.pages.sign_in import SignIn
from bot.web.pages.visitors import Visitor, Visitors

log = logging.getLogger(__name__)

Fields = Mapping[str, str]
Show = Callable[[Request, Visitor], Awaitable[Response]]
Act = Callable[[Request, Visitor, Fields], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]
TITLES = {403: "Not allowed", 404: "Not found", 422: "Not possible", 503: "Not now"}
STAY_SECONDS = 60.0
"""Access to a stream or a download is checked again after so long."""
LONGEST_NUMBER = 18  # in digits, because the store's numbers have 64 bits
GONE = "You no longer have access to this session."
NO_ANSWER = "GitHub isn't responding, so we can't check your access. Please try again in a minute."


@dataclass(frozen=True)
class Gate:
    store: Store
    pages: Pages
    people: Visitors
    access: VisitorAccess
    sign_in: SignIn
    operators: Operators

    def page(self, show: Show) -> Endpoint:
        """Let only people in who are signed in, and show errors as a page."""

        async def answer(request: Request) -> Response:
            visitor = await self.people.of(request)
            if visitor is None:
                query = f"?{request.url.query}" if request.url.query else ""
                back = request.url.path + query if request.method == "GET" else "/"  # a form is not sent again
                return self.sign_in.page(back, status=401)
            visitor = replace(visitor, operates=await self.operators.names(visitor))
            try:
                return await show(request, visitor)
            except Hidden:
                return self.said(visitor, "This page does not exist, or you may not see it.", 404)
            except NotAllowed as error:
                return self.said(visitor, str(error), 403)
            except TransientError as error:
                log.warning("a page waits", extra={"error": str(error)})
                return self.said(visitor, NO_ANSWER, 503)
            except BotError as error:
                return self.said(visitor, str(error), 422)

        return answer

    def form(self, act: Act) -> Endpoint:
        async def answer(request: Request, visitor: Visitor) -> Response:
            fields = await forms.read(request)
            if not visitors.is_theirs(request, visitor, fields.pop("csrf", "")):
                return self.said(visitor, "This form has expired. Please go back and try again.", 403)
            return await act(request, visitor, fields)

        return self.page(answer)

    def plain(self, show: Show) -> Endpoint:
        """Let only people in who are signed in, and answer errors with a line of text."""

        async def answer(request: Request) -> Response:
            visitor = await self.people.of(request)
            if visitor is None:
                return PlainTextResponse("Please sign in.\n", 401, COMMON)
            try:
                return await show(request, visitor)
            except NotAllowed:
                return PlainTextResponse("This does not exist, or you may not see it.\n", 404, COMMON)
            except TransientError:
                return PlainTextResponse(f"{NO_ANSWER}\n", 503, COMMON)
            except BotError as error:
                return PlainTextResponse(f"{error}\n", 422, COMMON)

        return answer

    def said(self, visitor: Visitor, words: str, status: int) -> Response:
        return self.pages.render(
            "said.html", status=status, title=TITLES[status], visitor=visitor, words=words, mood="bad", next=""
        )


class Stay:
    """A long visit: access is checked again now and then, and at once if it is in doubt."""

    def __init__(self, gate: Gate, visitor: Visitor, place: Place) -> None:
        self._gate = gate
        self._visitor = visitor
        self._place = place
        self._asked_at = gate.store.now()
        self._doubts = -1  # asks at once, because the visit may have ended since the request came in

    async def may_go_on(self) -> bool:
        """Raises TransientError while GitHub does not answer."""
        now, doubts = self._gate.store.now(), self._gate.access.doubts(self._visitor.id)
        if 0 <= now - self._asked_at < STAY_SECONDS and doubts == self._doubts:
            return True
        visits = await self._gate.people.by_mark(self._visitor.mark) is not None
        if not visits or not await self._gate.access.may_read(self._visitor, self._place):
            return False
        self._asked_at, self._doubts = now, doubts
        return True


def number(request: Request, name: str) -> int:
    """Read a number from the address; raise Hidden if nothing of ours can have it."""
    return number_in(str(request.path_params[name]))


def number_in(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER):
        raise Hidden("no such number")
    return int(text)
