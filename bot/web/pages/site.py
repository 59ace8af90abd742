"""Puts the pages of the running service together; until it runs, every page says that it is starting."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.funds import BudgetTerms
from bot.handlers.desk import Desk
from bot.outbound import Redactor
from bot.vault import Vault
from bot.web.api.door import ApiDoor
from bot.web.api.routes import ApiRoutes
from bot.web.health import Parts
from bot.web.pages import origin
from bot.web.pages.access import VisitorAccess
from bot.web.pages.changes import ChangesPages, ChangesPictures
from bot.web.pages.findings import Examination, Examine
from bot.web.pages.frame import COMMON, Pages, static_routes
from bot.web.pages.front import FrontStream
from bot.web.pages.gate import Gate
from bot.web.pages.installations import InstallationPages
from bot.web.pages.kept_work import KeptWorkPages
from bot.web.pages.lists import ListPages
from bot.web.pages.mcp_servers import McpPages
from bot.web.pages.operator import OperatorPages
from bot.web.pages.operators import Operators
from bot.web.pages.replays import ReplayButton
from bot.web.pages.sessions import SessionPages
from bot.web.pages.share_access import ShareAccess
from bot.web.pages.shared import SharedPages
from bot.web.pages.sharing import SharingPages
from bot.web.pages.sign_in import SignIn
from bot.web.pages.spending import SpendPages
from bot.web.pages.visitors import Visitors
from bot.web.pages.watch import Watching
from sandbox.agents.base import Agent

STARTING = "Forgehand is starting. Please load this page again in a moment.\n"
ENDING = "Forgehand is stopping. Please load this page again in a moment.\n"


@dataclass(frozen=True)
class SiteParts:
    """The parts of the service that the pages show and change."""

    desk: Desk
    vault: Vault
    agent: Agent
    redactor: Redactor
    parts: Parts
    examine: Examine
    """The check-up of `forgehand doctor`."""


class Site:
    """Opened once the service can answer, and closed before the server ends, which open streams would delay."""

    def __init__(self) -> None:
        self._app: ASGIApp = _waiting(STARTING)
        self._access: VisitorAccess | None = None
        self._watching: Watching | None = None

    def routes(self) -> list[BaseRoute]:
        mount = Mount("/", app=self)  # takes every path that is left, also those with a line break in them
        mount.path_regex = re.compile(mount.path_regex.pattern, re.DOTALL)
        return [mount]

    def doubt(self, person: int | None) -> None:
        """Ask GitHub again what this person (None: everyone) may see, even for open streams."""
        if self._access is not None and self._watching is not None:
            self._access.doubt(person)
            self._watching.nudge()

    @asynccontextmanager
    async def opened(self, given: SiteParts) -> AsyncIterator[None]:
        desk, agent = given.desk, given.agent
        pages, settings = await asyncio.to_thread(Pages), desk.settings
        people, access = Visitors(desk.store), VisitorAccess(desk.github, desk.store.now)
        sign_in = SignIn(pages, people, settings.github, settings.public_url)
        operators = Operators(desk.github, settings.github.operators)
        gate = Gate(desk.store, pages, people, access, sign_in, operators)
        examination = Examination(given.examine)
        watching = Watching(desk.store, pages, agent, BudgetTerms.of(desk.settings.limits))
        lists = ListPages(gate, desk.github)
        front = FrontStream(gate, lists)
        pictures = ChangesPictures(gate, desk, agent)
        changes = ChangesPages(gate, desk, pictures)
        shares = ShareAccess(desk.store, desk.github, access)
        routes = [
            *sign_in.routes(),
            *lists.routes(),
            *front.routes(),
            *SessionPages(gate, desk, watching).routes(),
            *changes.routes(),
            *KeptWorkPages(gate, desk).routes(),
            *SharingPages(gate, shares, settings.public_url).routes(),
            *SharedPages(pages, shares, watching, pictures, given.redactor).routes(),
            *InstallationPages(gate, settings, given.vault, desk.github).routes(),
            *McpPages(gate, settings, given.vault).routes(),
            *SpendPages(gate, settings.limits).routes(),
            *OperatorPages(gate, desk, given.parts, examination).routes(),
            *ReplayButton(gate, desk).routes(),
            *ApiRoutes(ApiDoor(desk.store, access), desk, watching, given.redactor).routes(),
            *static_routes(),
        ]
        at = origin.At(Starlette(routes=routes), settings.public_url or "")
        self._app, self._access, self._watching = at, access, watching
        try:
            yield
        finally:
            self._app = _waiting(ENDING)
            watching.close()
            front.close()
            changes.close()
            await examination.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _waiting(words: str) -> ASGIApp:
    return PlainTextResponse(words, 503, {**COMMON, "Retry-After": "2"})
