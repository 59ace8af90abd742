"""Shows an account's settings to its owners only; they can set the model's key, but never see it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot import account_settings, config_values
from bot.config_values import is_set
from bot.errors import NotAllowed, UserError, VaultError
from bot.github.client import GitHubApp
from bot.sessions.money import spending_limits
from bot.sessions.money.spending_limits import Ceilings
from bot.settings import Secret, Settings
from bot.store import accounts, audit, repo_configs, repos
from bot.store.repos import InstallationRow, InstallationState
from bot.store.spend import Payers
from bot.vault import NAMES, TERMS, Vault
from bot.web.credentials import proven
from bot.web.pages import account_form
from bot.web.pages.account_form import NOTHING, Entered, WrongFields
from bot.web.pages.gate import Act, Fields, Gate
from bot.web.pages.ownership import owned
from bot.web.pages.receivers_form import ReceiversForm
from bot.web.pages.registries_form import RegistriesForm
from bot.web.pages.tokens_form import TokensForm
from bot.web.pages.visitors import Visitor

MOST_ASKED = 40
MOST_TRAIL = 10
MOST_REPOSITORIES = 200
Change = Callable[[InstallationRow, Visitor, Fields], Awaitable[str]]


class InstallationPages:
    def __init__(self, gate: Gate, settings: Settings, vault: Vault, github: GitHubApp) -> None:
        self._gate = gate
        self._settings = settings
        self._vault = vault
        self._registries = RegistriesForm(gate.store, vault, settings.inside)
        self._tokens = TokensForm(gate.store, github)
        self._receivers = ReceiversForm(gate.store, vault, settings.inside)

    def routes(self) -> list[BaseRoute]:
        at = "/installations/{id}"
        changes: dict[str, Change] = {
            "key": self._store_key,
            "forget": self._forget_key,
            "limits": partial(account_form.change_limits, self._gate.store, self._settings.limits),
            "triggers": partial(account_form.change_triggers, self._gate.store),
            "sharing": partial(account_form.change_sharing, self._gate.store),
            "registries": self._registries.add,
            "registries/test": self._registries.test,
            "registries/remove": self._registries.remove,
            "tokens": self._tokens.make,
            "tokens/revoke": self._tokens.revoke,
            "registries/forks": partial(account_form.change_on_forks, self._gate.store),
            "receivers": self._receivers.add,
            "receivers/test": self._receivers.test,
            "receivers/remove": self._receivers.remove,
        }
        return [
            Route("/installations", self._gate.page(self._list)),
            Route(at, self._gate.page(self._show)),
            *(
                Route(f"{at}/{name}", self._gate.form(self._changing(change)), methods=["POST"])
                for name, change in changes.items()
            ),
        ]

    async def _list(self, request: Request, visitor: Visitor) -> Response:
        rows = [one for one in await repos.installations(self._gate.store) if one.state is InstallationState.ACTIVE]
        answers = await asyncio.gather(*(self._owns(visitor, one) for one in rows[:MOST_ASKED]))
        wrong = next((answer for answer in answers if isinstance(answer, str)), "")
        owned = [one for one, answer in zip(rows, answers, strict=False) if answer is True]
        return self._gate.pages.render(
            "installations.html", title="Installations", visitor=visitor, rows=owned, wrong=wrong
        )

    async def _owns(self, visitor: Visitor, row: InstallationRow) -> bool | str:
        """Explain an unknown answer only for the operator's own accounts: the visitor may be a stranger to others."""
        try:
            return await self._gate.access.is_admin(visitor, row.id)
        except NotAllowed as error:
            return str(error) if row.account.lower() in self._settings.github.accounts else False

    async def _show(self, request: Request, visitor: Visitor) -> Response:
        return await self._page(visitor, await owned(self._gate, request, visitor))

    def _changing(self, change: Change) -> Act:
        """Check the ownership now, make the change, and show a mistake on the same page."""

        async def act(request: Request, visitor: Visitor, fields: Fields) -> Response:
            row = await owned(self._gate, request, visitor, fresh=True)
            try:
                return await self._page(visitor, row, said=await change(row, visitor, fields))
            except WrongFields as wrong:
                return await self._page(visitor, row, wrong=str(wrong), status=422, entered=wrong.entered)
            except (UserError, VaultError) as error:
                return await self._page(visitor, row, wrong=str(error), status=422)

        return act

    async def _store_key(self, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
        name = fields.get("name", "")
        if name not in NAMES:
            raise UserError("Unknown kind of key.")
        key = await proven(name, Secret(fields.get("value", "")), self._settings.model)
        await self._vault.put(name, row.id, key)
        await audit.add(self._gate.store, visitor.login, "key stored", f"{name} of {row.account}")
        return "The key works and is stored, encrypted. The next request to the model uses it."

    async def _forget_key(self, row: InstallationRow, visitor: Visitor, fields: Fields) -> str:
        name = fields.get("name", "")
        if name not in NAMES or not await accounts.remove_credential(self._gate.store, name, row.id):
            raise UserError("This key is not stored.")
        await audit.add(self._gate.store, visitor.login, "key forgotten", f"{name} of {row.account}")
        return f"{name} is forgotten."

    async def _page(
        self,
        visitor: Visitor,
        row: InstallationRow,
        *,
        said: str = "",
        wrong: str = "",
        status: int = 200,
        entered: Entered = NOTHING,
    ) -> Response:
        store, limits = self._gate.store, self._settings.limits
        own = await accounts.settings_of(store, row.id)
        ledgers = await spending_limits.ledgers(store, Ceilings.of(limits), Payers(row.id), store.now())
        spent = {f"{one.period.value}_budget": f"${ledger.spent_usd:,.2f}" for one, ledger in ledgers}
        keys = [one for one in await self._vault.entries() if one.installation == row.id and one.name in NAMES]
        return self._gate.pages.render(
            "installation.html",
            status=status,
            title=f"Settings of {row.account}",
            visitor=visitor,
            id=row.id,
            account=row.account,
            keys=keys,
            names=NAMES,
            terms=TERMS,
            limits=account_form.limit_fields(limits, own, spent, entered),
            triggers=account_form.trigger_fields(own, entered),
            sharing=account_form.sharing_field(own, entered),
            registries=await self._registries.shown(row, own),
            tokens=await self._tokens.shown(row),
            receivers=await self._receivers.shown(row),
            sharing_choices=account_settings.SHARING_CHOICES,
            version=account_settings.version(own),
            timeout=limits.timeout_minutes,
            shared=await accounts.own_repository(store, row.id),
            repositories=[
                (one, [value for value in config_values.listed(one.config_values, limits, own) if is_set(value)])
                for one in await repo_configs.of_installation(store, row.id, MOST_REPOSITORIES)
            ],
            github=self._settings.github.url,
            trail=await audit.about(store, row.account, MOST_TRAIL),
            command=self._settings.command,
            said=said,
            wrong=wrong,
        )
