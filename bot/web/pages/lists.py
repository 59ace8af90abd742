"""The front page with the sessions, and the ledger of deliveries: of each person what concerns their repositories."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot.models import Permission, TurnState
from bot.store import looks
from bot.web.pages.gate import Gate
from bot.web.pages.visitors import Visitor

MOST_LOOKED_AT = 300
MOST_SHOWN = 100


class ListPages:
    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/", self._gate.page(self._home)),
            Route("/deliveries", self._gate.page(self._deliveries)),
        ]

    async def _home(self, request: Request, visitor: Visitor) -> Response:
        found = await looks.recent(self._gate.store, MOST_LOOKED_AT)
        may = await self._gate.access.permissions(visitor, ((one.repo, one.installation_id) for one in found))
        rows = [one for one in found if may[one.repo_id] is not Permission.NONE][:MOST_SHOWN]
        running = [one for one in rows if one.state is not TurnState.DONE]
        ended = [one for one in rows if one.state is TurnState.DONE]
        return self._gate.pages.render("home.html", title="Sessions", visitor=visitor, running=running, ended=ended)

    async def _deliveries(self, request: Request, visitor: Visitor) -> Response:
        """For who could have asked for something: why nothing came of it is not for all the world."""
        found = await looks.delivered(self._gate.store, MOST_LOOKED_AT)
        may = await self._gate.access.permissions(visitor, ((one.repo, one.installation_id) for one in found))
        rows = [one for one in found if may[one.repo_id].may_write][:MOST_SHOWN]
        return self._gate.pages.render("deliveries.html", title="Deliveries", visitor=visitor, rows=rows)
