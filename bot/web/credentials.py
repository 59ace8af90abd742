"""Which credential a request at the model gets: read at that moment, never held by an environment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.errors import SettingsError
from bot.models import InstallationId
from bot.settings import ModelSettings
from bot.store.credentials import OPERATOR
from bot.vault import NAMES, OAUTH_TOKEN, Vault
from bot.web.gateway.dialect import Credential

NONE = (
    "There is no credential for the model: set ANTHROPIC_API_KEY (or CLAUDE_CODE_OAUTH_TOKEN), or store one with "
    "`forgehand keys set ANTHROPIC_API_KEY`."
)
ENVIRONMENT = "the environment"


@dataclass(frozen=True)
class Found:
    """A credential with where it came from, in words for the operator."""

    credential: Credential
    name: str
    source: str
    installation: InstallationId = OPERATOR
    """Whose it is."""

    @property
    def another(self) -> str:
        """How to have another one used: what is stored does not come before what is set."""
        if self.source == ENVIRONMENT:
            return f"Set another {self.name} and start Forgehand anew: it wins over a stored one."
        place = "" if self.installation == OPERATOR else f" --installation {self.installation}"
        return f"Store another with `forgehand keys set {self.name}{place}`."


def from_settings(model: ModelSettings) -> Callable[[InstallationId], Awaitable[Credential]]:
    """The operator's own, for every installation; an API key wins over an OAuth token."""

    async def credential(_: InstallationId) -> Credential:
        return _needed(operators(model))

    return credential


def from_vault(vault: Vault, model: ModelSettings) -> Callable[[InstallationId], Awaitable[Credential]]:
    """The installation's, or else the operator's; what was stored a moment ago counts."""

    async def credential(installation: InstallationId) -> Credential:
        return _needed(await find(vault, model, installation))

    return credential


async def find(vault: Vault, model: ModelSettings, installation: InstallationId) -> Found | None:
    """One that is stored and cannot be read raises: the next in line would pay for somebody else."""
    stored = await vault.around(installation)
    for place in dict.fromkeys((installation, OPERATOR)):
        own = _set(model) if place == OPERATOR else {}
        for name in NAMES:
            if name in own:
                return own[name]
            if (row := stored.get((name, place))) is not None:
                where = "the vault" if place == OPERATOR else f"the vault of installation {place}"
                return Found(Credential(vault.read(row), name == OAUTH_TOKEN), name, where, place)
    return None


def operators(model: ModelSettings) -> Found | None:
    """The operator's own, where nothing is stored."""
    return next(iter(_set(model).values()), None)


def _set(model: ModelSettings) -> dict[str, Found]:
    """By name, the one that wins first."""
    named = zip(NAMES, (model.api_key, model.oauth_token), strict=True)
    return {
        name: Found(Credential(value, name == OAUTH_TOKEN), name, ENVIRONMENT)
        for name, value in named
        if value is not None
    }


def _needed(found: Found | None) -> Credential:
    if found is None:
        raise SettingsError(NONE)
    return found.credential
