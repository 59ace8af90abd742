"""The button that replays a failed delivery, for the operator and for administrators of its repository."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bot.errors import Hidden, UserError
from bot.handlers.desk import Desk
from bot.models import Permission
from bot.notices import Topic
from bot.store import deliveries, lists
from bot.web.pages.frame import COMMON
from bot.web.pages.gate import Fields, Gate
from bot.web.pages.visitors import Visitor

BACK = ("/deliveries", "/operator")
GONE = "This delivery cannot be replayed: it has not failed, or somebody has replayed it already."


class ReplayButton:
    def __init__(self, gate: Gate, desk: Desk) -> None:
        self._gate = gate
        self._desk = desk

    def routes(self) -> list[BaseRoute]:
        return [Route("/deliveries/replay", self._gate.form(self._replay), methods=["POST"])]

    async def _replay(self, request: Request, visitor: Visitor, fields: Fields) -> Response:
        guid = fields.get("guid", "")
        await self._require_right(visitor, guid)
        if not await deliveries.reopen(self._desk.store, guid, by=visitor.login):
            raise UserError(GONE)
        self._desk.notices.tell(Topic.DELIVERY)
        back = fields.get("back", "")
        return RedirectResponse(back if back in BACK else BACK[0], 303, headers=COMMON)

    async def _require_right(self, visitor: Visitor, guid: str) -> None:
        """Ask GitHub now. A stranger cannot tell an unknown delivery from one that is somebody else's."""
        try:
            await self._gate.operators.require(visitor, fresh=True)
        except Hidden:
            found = await lists.delivery(self._desk.store, guid)
            if found is None:
                raise
            place = (found.repo, found.installation_id)
            if await self._gate.access.permission(visitor, place, fresh=True) is not Permission.ADMIN:
                raise
