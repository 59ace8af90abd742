"""The installation that an address names, for the account's owners only."""

from __future__ import annotations

from starlette.requests import Request

from bot.errors import Hidden
from bot.models import InstallationId
from bot.store import repos
from bot.store.repos import InstallationRow, InstallationState
from bot.web.pages.gate import Gate, number
from bot.web.pages.visitors import Visitor


async def owned(gate: Gate, request: Request, visitor: Visitor, *, fresh: bool = False) -> InstallationRow:
    """Raise Hidden for everyone else; `fresh` asks GitHub now, before a change."""
    row = await repos.installation(gate.store, InstallationId(number(request, "id")))
    if row is None or row.state is InstallationState.DELETED:
        raise Hidden("no such installation")
    if not await gate.access.is_admin(visitor, row.id, fresh=fresh):
        raise Hidden("somebody else's")
    return row
