"""The registries on an account's settings page: its owners store, try and forget them, and never see a secret again."""

from __future__ import annotations

from collections.abc import Mapping

from bot import account_settings
from bot.account_settings import Choices
from bot.errors import UserError
from bot.outside import probing, registries, services
from bot.registries import DIALECTS
from bot.settings import Secret
from bot.settings.inside import InsideHosts
from bot.store import outside_services
from bot.store.accounts import OPERATOR
from bot.store.base import Store
from bot.store.outside_services import CredentialKind, OutsideService, Purpose
from bot.store.repos import InstallationRow
from bot.vault import Vault
from bot.web.pages.gate import Fields
from bot.web.pages.visitors import Visitor

CREDENTIALS = {
    "none": "none: the registry is public",
    "bearer": "a bearer token",
    "basic": "a user's password",
    "header": "the value of a header",
}


class RegistriesForm:
    def __init__(self, store: Store, vault: Vault, inside: InsideHosts) -> None:
        self._store = store
        self._vault = vault
        self._inside = inside

    async def shown(self, row: InstallationRow, own: Choices) -> Mapping[str, object]:
        """Return what the page's part shows."""
        choice = own.get(account_settings.ON_FORKS)
        return {
            "stored": await outside_services.of_installation(self._store, Purpose.REGISTRY, row.id),
            "offered": await outside_services.of_installation(self._store, Purpose.REGISTRY, OPERATOR),
            "kinds": {name: dialect.label for name, dialect in DIALECTS.items()},
            "credentials": CREDENTIALS,
            "forks": str(choice.value) if choice and choice.value else "",
            "forks_title": account_settings.ON_FORKS_TITLE,
            "forks_choices": account_settings.ON_FORKS_CHOICES,
        }

    async def add(self, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
        kept_as = fields.get("credential", "")
        if kept_as not in CREDENTIALS:
            raise UserError("Choose the kind of the credential.")
        hosts = fields.get("hosts", "").strip()
        service = OutsideService(
            row.id,
            Purpose.REGISTRY,
            fields.get("registry", "").strip(),
            fields.get("kind", ""),
            fields.get("address", "").strip(),
            visitor.login,
            scope=fields.get("scope", "").strip(),
            options={registries.HOSTS: hosts} if hosts else {},
            credential=CredentialKind(kept_as),
            credential_name=fields.get("credential_name", "").strip() if kept_as in ("basic", "header") else "",
        )
        registries.check(service)
        secret = Secret(fields.get("secret", "")) if kept_as != "none" else None
        await services.keep(self._store, self._vault, service, secret, account=row.account, inside=self._inside)
        trial = await probing.try_out(service, self._vault, self._inside)
        return f"{service.name} is stored. {trial.words}"

    async def test(self, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
        trial = await probing.try_out(await self._named(row, fields), self._vault, self._inside)
        if not trial.works:
            raise UserError(trial.words)
        return trial.words

    async def remove(self, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
        service = await self._named(row, fields)
        await outside_services.remove(self._store, service, by=visitor.login, account=row.account)
        return f"{service.name} is forgotten."

    async def _named(self, row: InstallationRow, fields: Fields) -> OutsideService:
        for one in await outside_services.of_installation(self._store, Purpose.REGISTRY, row.id):
            if one.name == fields.get("registry"):
                return one
        raise UserError("This registry is not stored.")
