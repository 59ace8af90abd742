"""Which credential a request at the model gets: read at that moment, never held by an environment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.errors import SettingsError
from bot.models import InstallationId
from bot.settings import ModelSettings
from bot.web.gateway_headers import Credential


def from_settings(model: ModelSettings) -> Callable[[InstallationId], Awaitable[Credential]]:
    """The operator's own, for every installation; an API key wins over an OAuth token."""

    async def credential(_: InstallationId) -> Credential:
        if model.api_key is not None:
            return Credential(model.api_key)
        if model.oauth_token is not None:
            return Credential(model.oauth_token, is_oauth=True)
        raise SettingsError("ANTHROPIC_API_KEY is not set.")

    return credential
