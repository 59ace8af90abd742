"""Tries a credential at the model's provider with a request that costs nothing, and says in words what is wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import urlsplit

from bot.errors import UserError
from bot.settings import ModelSettings, Secret
from bot.vault import OAUTH_TOKEN, require_storable
from bot.web.credentials import Found
from bot.web.gateway import dialect
from bot.web.gateway.connection import ConnectionBroken
from bot.web.gateway.dialect import Credential, Dialect
from bot.web.gateway.exchange import scrub
from bot.web.gateway.upstream import Unreachable, Upstream

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
class Trial:
    works: bool
    words: str


async def proven(name: str, given: Secret, model: ModelSettings) -> Secret:
    """To be stored: what does not work would only be found out by the next session."""
    key = Secret(require_storable(name, given))
    found = Found(Credential(key, name == OAUTH_TOKEN), name, "the form")
    trial = await try_out(found, model.upstream, model.model)
    if not trial.works:
        raise UserError(trial.words)
    return key


async def try_out(found: Found, upstream_url: str, model: str) -> Trial:
    upstream = Upstream(upstream_url, READ_SECONDS)
    headers, _ = dialect.forwarded([(b"anthropic-version", b"2023-06-01")], found.credential, Dialect())
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
    return Trial(False, f"{what} does not work: {_advice(status, found)} ({words})")


def _advice(status: int, found: Found) -> str:
    default = "the provider has trouble; the key was not judged." if status >= 500 else "the provider says no."
    return ADVICE.get(status, default).format(another=found.another)


def _words(status: int, body: bytes) -> bytes:
    """The status, and the provider's own message where there is one."""
    try:
        message = json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = ""
    plain = "".join(letter for letter in str(message) if letter.isprintable())[:MOST_WORDS]
    return f"{status}{f': {plain}' if plain else ''}".encode()


def _host(url: str) -> str:
    return urlsplit(url).netloc
