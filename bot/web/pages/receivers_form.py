"""The receivers on an account's settings page: its owners store, try and forget them, and see a key only once."""

from __future__ import annotations

from collections.abc import Mapping

from bot.errors import UserError
from bot.outside import posting, receivers
from bot.outside.receivers import ReceiverPlace, ReceiverWish
from bot.repo_config.notify import BulletinEvent
from bot.settings import Secret
from bot.settings.inside import InsideHosts
from bot.store import bulletins, outside_services
from bot.store.accounts import OPERATOR
from bot.store.base import Store
from bot.store.outside_services import OutsideService, Purpose
from bot.store.repos import InstallationRow
from bot.vault import Vault
from bot.web.pages.gate import Fields
from bot.web.pages.visitors import Visitor

EVENTS = {
    BulletinEvent.ENDED: "a turn has ended",
    BulletinEvent.ASKS: "someone is asked for a yes or an answer",
    BulletinEvent.OVER_BUDGET: "a turn has used up its money",
}


class ReceiversForm:
    def __init__(self, store: Store, vault: Vault, inside: InsideHosts) -> None:
        self._store = store
        self._vault = vault
        self._inside = inside

    async def shown(self, row: InstallationRow) -> Mapping[str, object]:
        """Return what the page's part shows."""
        standings = {
            one.receiver: one for one in await bulletins.standings(self._store) if one.installation_id == row.id
        }
        stored = await outside_services.of_installation(self._store, Purpose.RECEIVER, row.id)
        offered = await outside_services.of_installation(self._store, Purpose.RECEIVER, OPERATOR)
        return {
            "stored": [(one, one.options.get(bulletins.ON, ""), standings.get(one.name)) for one in stored],
            "offered": [one.name for one in offered],
            "events": EVENTS,
        }

    async def add(self, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
        on = receivers.read_events([one.value for one in BulletinEvent if fields.get(f"on_{one}")])
        wish = ReceiverWish(fields.get("receiver", "").strip(), Secret(fields.get("address", "")), on)
        place = ReceiverPlace(row.id, row.account, visitor.login)
        service, key = await receivers.keep(self._store, self._vault, wish, place, self._inside)
        return f"{service.name} is stored. It can check our signature with this key, shown only now: {key.reveal()}"

    async def test(self, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
        result = await posting.try_out(await self._named(row, fields), self._vault, self._inside, self._store.now)
        if not result.works:
            raise UserError(result.words)
        return result.words

    async def remove(self, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
        service = await self._named(row, fields)
        await outside_services.remove(self._store, service, by=visitor.login, account=row.account)
        return f"{service.name} is forgotten."

    async def _named(self, row: InstallationRow, fields: Fields) -> OutsideService:
        for one in await outside_services.of_installation(self._store, Purpose.RECEIVER, row.id):
            if one.name == fields.get("receiver"):
                return one
        raise UserError("This receiver is not stored.")
