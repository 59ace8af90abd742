"""Chooses the model's credential at the moment of each request, and tries one out with a free request."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from bot.errors import SettingsError, UserError
from bot.models import InstallationId
from bot.settings import ModelSettings, Secret
from bot.store.accounts import OPERATOR
from bot.vault import NAMES, OAUTH_TOKEN, Vault, require_storable
from bot.web.gateway import dialect
from bot.web.gateway.connection import ConnectionBroken
from bot.web.gateway.dialect import Credential, Dialect
from bot.web.gateway.exchange import Unreachable, Upstream, scrub

NONE = (
    "There is no credential for the model: set ANTHROPIC_API_KEY (or CLAUDE_CODE_OAUTH_TOKEN), or store one with "
    "`forgehand keys set ANTHROPIC_API_KEY`."
)
ENVIRONMENT = "the environment"
PATH = "/v1/messages/count_tokens"
READ_SECONDS = 30.0
MOST_WORDS = 300
MOST_BYTES = 64 << 10
ADVICE = {
    400: "the request was refused; is it a provider that speaks Anthropic's API?",
    401: "the key is not accepted: it was mistyped or revoked. {another}",
    403: "the key is known but may not do this: look at its workspace and permissions at the provider.",
    404: "there is no such model or path there: look at FORGEHAND_MODEL and ANTHROPIC_BASE_URL.",
    429: "the key is accepted, but its rate limit is reached.",
    529: "the provider is overloaded; the key was not judged.",
}


@dataclass(frozen=True)
class FoundCredential:
    credential: Credential
    name: str
    source: str
    installation: InstallationId = OPERATOR

    @property
    def another(self) -> str:
        """Tell the operator how to replace it: a variable wins over a stored key."""
        if self.source == ENVIRONMENT:
            return f"Set another {self.name} and restart Forgehand: it wins over a stored one."
        place = "" if self.installation == OPERATOR else f" --installation {self.installation}"
        return f"Store another with `forgehand keys set {self.name}{place}`."


def from_settings(model: ModelSettings) -> Callable[[InstallationId], Awaitable[Credential]]:
    """Use the operator's own for every installation; an API key wins over an OAuth token."""

    async def credential(_: InstallationId) -> Credential:
        return _needed(operators(model))

    return credential


def from_vault(vault: Vault, model: ModelSettings) -> Callable[[InstallationId], Awaitable[Credential]]:
    """Use the installation's, or else the operator's, as stored at that moment."""

    async def credential(installation: InstallationId) -> Credential:
        return _needed(await find(vault, model, installation))

    return credential


async def find(vault: Vault, model: ModelSettings, installation: InstallationId) -> FoundCredential | None:
    """Raise if a stored one cannot be read: the next in line would pay for somebody else."""
    stored = await vault.around(installation)
    for place in dict.fromkeys((installation, OPERATOR)):
        own = _set(model) if place == OPERATOR else {}
        for name in NAMES:
            if name in own:
                return own[name]
            if (row := stored.get((name, place))) is not None:
                where = "the vault" if place == OPERATOR else f"the vault of installation {place}"
                return FoundCredential(Credential(vault.read(row), name == OAUTH_TOKEN), name, where, place)
    return None


def operators(model: ModelSettings) -> FoundCredential | None:
    return next(iter(_set(model).values()), None)


def _set(model: ModelSettings) -> dict[str, FoundCredential]:
    """Map each name that is set to its credential; the first one wins."""
    named = zip(NAMES, (model.api_key, model.oauth_token), strict=True)
    return {
        name: FoundCredential(Credential(value, name == OAUTH_TOKEN), name, ENVIRONMENT)
        for name, value in named
        if value is not None
    }


def _needed(found: FoundCredential | None) -> Credential:
    if found is None:
        raise SettingsError(NONE)
    return found.credential


def elsewhere(title: str) -> str:
    return (
        f"Forgehand reaches the model through {title}, with the operator's identity there. It would not use this key."
    )


@dataclass(frozen=True)
class Trial:
    works: bool
    words: str


async def proven(name: str, given: Secret, model: ModelSettings, source: str = "the form") -> Secret:
    """Try a key before it is stored. Otherwise only the next session would notice that it does not work."""
    if model.provider.at is not None:
        raise UserError(elsewhere(model.provider.at.title))
    key = Secret(require_storable(name, given))
    found = FoundCredential(Credential(key, name == OAUTH_TOKEN), name, source)
    trial = await try_out(found, model.upstream, model.model)
    if not trial.works:
        raise UserError(trial.words)
    return key


async def try_out(found: FoundCredential, upstream_url: str, model: str) -> Trial:
    upstream = Upstream(upstream_url, READ_SECONDS)
    headers = dialect.forwarded([(b"anthropic-version", b"2023-06-01")], found.credential, Dialect())
    body = {"model": model, "messages": [{"role": "user", "content": "Does this key work?"}]}
    try:
        async with upstream.ask(PATH, headers, json.dumps(body).encode()) as answer:
            status, said = answer.status, await answer.whole(MOST_BYTES) or b""
    except (Unreachable, ConnectionBroken) as error:
        return Trial(False, f"{_host(upstream_url)} could not be reached ({error}).")
    finally:
        await upstream.close()
    what = f"{found.name} from {found.source}"
    if status == 200:
        return Trial(True, f"{what} works: {_host(upstream_url)} counted tokens for {model}.")
    words = scrub(_words(status, said), (found.credential.value.reveal(),)).decode("utf-8", "replace")
    default = "the provider has trouble; the key was not judged." if status >= 500 else "the provider says no."
    advice = ADVICE.get(status, default).format(another=found.another)
    return Trial(False, f"{what} does not work: {advice} ({words})")


def _words(status: int, body: bytes) -> bytes:
    try:
        message = json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = ""
    plain = "".join(letter for letter in str(message) if letter.isprintable())[:MOST_WORDS]
    return f"{status}{f': {plain}' if plain else ''}".encode()


def _host(url: str) -> str:
    return urlsplit(url).netloc
