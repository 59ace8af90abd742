"""Shows an account's MCP servers to its owners, who store, try and forget them; a secret never comes out again."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot.errors import UserError, VaultError
from bot.settings import Settings
from bot.store import outside_services
from bot.store.accounts import OPERATOR
from bot.store.outside_services import OutsideService, Purpose
from bot.store.repos import InstallationRow
from bot.vault import Vault
from bot.web.mcp import entry
from bot.web.mcp.entry import CREDENTIALS, ServerEntry
from bot.web.pages.gate import Fields, Gate
from bot.web.pages.ownership import owned
from bot.web.pages.visitors import Visitor

MOST_SERVERS = 50
TYPED = ("name", "address", "credential", "identity", "token_address", "scope", "tools", "asks", "forks")
"""Fields that a rejected form shows again: all but the secret."""


class McpPages:
    def __init__(self, gate: Gate, settings: Settings, vault: Vault) -> None:
        self._gate = gate
        self._inside = settings.inside
        self._vault = vault

    def routes(self) -> list[BaseRoute]:
        at = "/installations/{id}/mcp"
        return [
            Route(at, self._gate.page(self._show)),
            *(
                Route(f"{at}/{name}", self._gate.form(act), methods=["POST"])
                for name, act in (("store", self._store), ("test", self._test), ("forget", self._forget))
            ),
        ]

    async def _show(self, request: Request, visitor: Visitor) -> Response:
        return await self._page(visitor, await owned(self._gate, request, visitor))

    async def _store(self, request: Request, visitor: Visitor, fields: Fields) -> Response:
        row = await owned(self._gate, request, visitor, fresh=True)
        try:
            service = ServerEntry.of_fields(fields).service(row.id, visitor.login, self._inside)
            known = await outside_services.of_installation(self._gate.store, Purpose.MCP, row.id)
            if len(known) >= MOST_SERVERS and service.name not in {one.name for one in known}:
                raise UserError(f"An account stores up to {MOST_SERVERS} MCP servers. Forget one first.")
            secret = fields.get("secret", "")
            await entry.keep(self._gate.store, self._vault, service, secret, account=row.account, inside=self._inside)
        except (UserError, VaultError) as error:
            return await self._page(visitor, row, wrong=str(error), typed=fields)
        works, said = await entry.try_out(self._gate.store, self._vault, service, self._inside)
        stored = f"{service.name} is stored."
        return await self._page(
            visitor, row, said=f"{stored} {said}" if works else stored, trouble="" if works else said
        )

    async def _test(self, request: Request, visitor: Visitor, fields: Fields) -> Response:
        row, service = await self._named(request, visitor, fields)
        if service is None:
            return await self._page(visitor, row, wrong="This server is not stored.")
        works, said = await entry.try_out(self._gate.store, self._vault, service, self._inside)
        return await self._page(visitor, row, said=said if works else "", trouble="" if works else said)

    async def _forget(self, request: Request, visitor: Visitor, fields: Fields) -> Response:
        row, service = await self._named(request, visitor, fields)
        if service is None:
            return await self._page(visitor, row, wrong="This server is not stored.")
        await outside_services.remove(self._gate.store, service, by=visitor.login, account=row.account)
        return await self._page(visitor, row, said=f"{service.name} is forgotten, with its secret.")

    async def _named(
        self, request: Request, visitor: Visitor, fields: Fields
    ) -> tuple[InstallationRow, OutsideService | None]:
        row = await owned(self._gate, request, visitor, fresh=True)
        known = await outside_services.of_installation(self._gate.store, Purpose.MCP, row.id)
        return row, next((one for one in known if one.name == fields.get("name")), None)

    async def _page(
        self,
        visitor: Visitor,
        row: InstallationRow,
        *,
        said: str = "",
        wrong: str = "",
        trouble: str = "",
        typed: Fields | None = None,
    ) -> Response:
        store = self._gate.store
        return self._gate.pages.render(
            "mcp_servers.html",
            status=422 if wrong else 200,
            title=f"MCP servers of {row.account}",
            visitor=visitor,
            id=row.id,
            account=row.account,
            servers=[_shown(one) for one in await outside_services.of_installation(store, Purpose.MCP, row.id)],
            operators=[one.name for one in await outside_services.of_installation(store, Purpose.MCP, OPERATOR)],
            credentials=CREDENTIALS,
            typed={name: (typed or {}).get(name, "") for name in TYPED},
            said=said,
            wrong=wrong or trouble,
        )


def _shown(service: OutsideService) -> dict[str, object]:
    return {
        "name": service.name,
        "address": service.address,
        "credential": entry.credential_words(service),
        "rules": entry.rules_words(service),
        "by": service.stored_by,
        "at": service.stored_at,
    }
