"""Knows who operates this service: the people that the operator has named, or the person who owns the App."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection

from bot.errors import BotError, Hidden
from bot.github.client import GitHubApp
from bot.web.pages.visitors import Visitor

HOLDS_SECONDS = 60.0
NAME_SECONDS = 2.0
"""Every page waits for it; GitHub is asked once, for the App's owner."""


class Operators:
    """If the App belongs to an organisation and no one is named, there is none: no organisation can sign in."""

    def __init__(self, github: GitHubApp, named: Collection[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._github = github
        self._named = frozenset(named)
        self._clock = clock
        self._known: dict[str, tuple[float, int | None]] = {}

    async def names(self, visitor: Visitor) -> bool:
        """Tell whether the visitor has such a name. It proves nothing: the account may have changed hands."""
        try:
            async with asyncio.timeout(NAME_SECONDS):
                return visitor.login.lower() in await self._logins()
        except (BotError, TimeoutError):
            return False

    async def require(self, visitor: Visitor, *, fresh: bool = False) -> None:
        """Raise Hidden for everyone else; `fresh` asks GitHub now, before a change."""
        login = visitor.login.lower()
        if login not in await self._logins() or await self._number(login, fresh=fresh) != visitor.id:
            raise Hidden("not the operator")

    async def _logins(self) -> Collection[str]:
        return self._named or frozenset(((await self._github.identity()).owner.lower(),))

    async def _number(self, login: str, *, fresh: bool) -> int | None:
        """Return the number of the account that has the login now, so that a name given up opens nothing."""
        known, now = self._known.get(login), self._clock()
        if fresh or known is None or not 0 <= now - known[0] < HOLDS_SECONDS:
            known = now, await self._github.account_id(login)
            self._known[login] = known
        return known[1]
