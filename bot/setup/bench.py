"""The state of set-up: the vault, the settings so far, and the App once there is one."""

from __future__ import annotations

from collections.abc import Mapping

from bot import checkup, registration, settings
from bot.checkup import CheckupFinding
from bot.errors import SettingsError, UserError
from bot.github import tokens
from bot.github.client import GitHubApp
from bot.models import InstallationId
from bot.registration import Registered
from bot.settings import GitHubSettings, Secret
from bot.store import audit
from bot.store.accounts import OPERATOR
from bot.store.base import Store
from bot.vault import API_KEY, Vault
from bot.web import credentials

ACTOR = "operator"
LONGEST_ID = 18


class SetupState:
    def __init__(self, values: Mapping[str, str], store: Store, vault: Vault) -> None:
        self._values = values
        self._store = store
        self._vault = vault
        self.github_url, self.github_api_url = settings.read_github_urls(values)
        self._asked_for: dict[str, str] = {}
        """The public address that was given before a trip to GitHub, by the trip's state."""

    @property
    def public_url(self) -> str:
        return settings.read_public_url(self._values)

    @property
    def command(self) -> str:
        return self._values.get("FORGEHAND_COMMAND", "").strip() or "/claude"

    async def app(self) -> Registered | None:
        return await registration.load(self._vault)

    def address(self, given: str) -> str:
        """Check a typed address as the setting would be; empty if nothing reaches this machine."""
        try:
            return settings.read_public_url({"FORGEHAND_PUBLIC_URL": given})
        except SettingsError as error:
            raise UserError(str(error).replace("FORGEHAND_PUBLIC_URL", "The address")) from None

    def remember(self, state: str, public_url: str) -> None:
        self._asked_for[state] = public_url

    async def create(self, state: str, code: str) -> Registered:
        """Fetch the credentials of the App that GitHub made, and store them before anything else."""
        made = await tokens.app_for(self.github_api_url, code)
        self._vault.hide(made.private_key, made.webhook_secret, made.client_secret)
        public_url = self._asked_for.pop(state, "")
        credentials = made.private_key, made.webhook_secret, made.client_id, made.client_secret
        app = Registered(made.app_id, made.slug, *credentials, self.github_url, public_url, made.url)
        await self._save(app, "created")
        return app

    async def take_existing(self, fields: Mapping[str, str]) -> Registered:
        """Take an existing App; GitHub must know its id by the key."""
        number = fields.get("app_id", "")
        if not number.isascii() or not number.isdecimal() or len(number) > LONGEST_ID:
            raise UserError("The App ID is a number; you find it at the top of the App's settings page.")
        key, hook = registration.pem(fields.get("pem", "")), _hook_secret(fields.get("webhook_secret", ""))
        client = fields.get("client_id", ""), Secret(fields.get("client_secret", ""))
        self._vault.hide(key, hook, client[1])
        public_url = self.address(fields.get("public_url", ""))
        if public_url and not hook.reveal():
            raise UserError("The webhook secret is missing: set one on the App's settings page, and enter it here.")
        github = GitHubApp(GitHubSettings(self.github_url, self.github_api_url, int(number), key, (), ()))
        try:
            known = await github.registration()
        finally:
            await github.close()
        app = Registered(int(number), known.slug, key, hook, *client, self.github_url, public_url, known.url)
        await self._save(app, "named")
        return app

    async def store_key(self, value: str) -> str:
        self._vault.hide(Secret(value))
        key = await credentials.proven(API_KEY, Secret(value), settings.read_model(self._values))
        await self._vault.put(API_KEY, OPERATOR, key)
        await audit.add(self._store, ACTOR, "key stored", API_KEY)
        return "The key works and is stored, encrypted."

    async def key(self) -> str:
        if (at := settings.read_model(self._values).provider.at) is not None:
            return f"Forgehand reaches the model through {at.title}."
        found = await credentials.find(self._vault, settings.read_model(self._values), InstallationId(OPERATOR))
        return f"Forgehand uses {found.name} from {found.source}." if found else ""

    async def check(self) -> list[CheckupFinding]:
        app = await self.app()
        return await checkup.examine(settings.read(registration.under(self._values, app)))

    async def _save(self, app: Registered, how: str) -> None:
        await registration.save(self._vault, app)
        await audit.add(self._store, ACTOR, f"app {how}", app.slug, f"id {app.app_id}")


def _hook_secret(given: str) -> Secret:
    """Refuse a comma: settings would read two secrets, and every genuine delivery would fail."""
    if "," in given:
        raise UserError(
            "The webhook secret contains a comma: set one without it on the App's settings page, and enter it here."
        )
    return Secret(given)
