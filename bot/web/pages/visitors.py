"""The signed-in person behind a cookie, and the proof that a form comes from our page in their browser."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from bot.models import Person
from bot.store import accounts
from bot.store.base import Store
from bot.web.pages import origin

VISIT_SECONDS = 8 * 3600.0
LONGEST_MARK = 100


@dataclass(frozen=True)
class Visitor:
    id: int
    login: str
    ends_at: float
    csrf: str = field(repr=False)  # every form that we give to this browser carries it
    mark: str = field(repr=False)
    operates: bool = False
    """Whether to show the way to the operator's page; it asks again."""


class Visitors:
    """The cookie is only a random mark; the store knows whose it is."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, request: Request) -> Visitor | None:
        return await self.by_mark(request.cookies.get(cookie_name("forgehand", request), ""))

    async def by_mark(self, mark: str) -> Visitor | None:
        if not 20 < len(mark) < LONGEST_MARK:
            return None
        visit = await accounts.visit(self._store, mark)
        csrf = hmac.digest(mark.encode(), b"forgehand form", "sha256").hex()
        return Visitor(visit.user_id, visit.login, visit.ends_at, csrf, mark) if visit else None

    async def begin(self, request: Request, response: Response, person: Person) -> None:
        """Set a new mark in any case: somebody else may know the browser's old one."""
        mark = secrets.token_urlsafe(32)
        await accounts.begin_visit(self._store, mark, person.id, person.login, VISIT_SECONDS)
        set_cookie(request, response, "forgehand", mark, VISIT_SECONDS)

    async def end(self, request: Request, response: Response, visitor: Visitor) -> None:
        await accounts.end_visit(self._store, visitor.mark)
        set_cookie(request, response, "forgehand", "", 0)


def is_theirs(request: Request, visitor: Visitor, given: str) -> bool:
    """Check that the form is ours, and was sent from this site by the browser that got it."""
    return origin.is_same(request) and hmac.compare_digest(visitor.csrf.encode(), given.encode())


def set_cookie(request: Request, response: Response, name: str, value: str, seconds: float) -> None:
    """Use SameSite=Lax: browsers must send it when GitHub leads somebody back."""
    response.set_cookie(
        cookie_name(name, request),
        value,
        max_age=int(seconds),
        path="/",
        secure=origin.is_https(request),
        httponly=True,
        samesite="lax",
    )


def cookie_name(name: str, request: Request) -> str:
    """Add the prefix that keeps other hosts of the domain from setting it; browsers allow it only over https."""
    return f"__Host-{name}" if origin.is_https(request) else name
