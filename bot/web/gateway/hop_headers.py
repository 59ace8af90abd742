"""Which headers come in, which go on: the client's credential ends here, the rest of its headers pass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bot.settings import Secret
from bot.web.gateway.dialect import Dialect
from bot.web.gateway.errors import Refusal

RawHeaders = Iterable[tuple[bytes, bytes]]

HOP_BY_HOP = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "proxy-connection"}
OURS = {"host", "content-length", "content-type", "content-encoding", "accept-encoding", "expect", "cookie", "via"}
CREDENTIALS = ("api-key", "authorization")
"""How they end, those that other providers take beside their own included: a key of somebody else's account must not
lead there."""
PLAIN = re.compile(r"[a-z0-9-]+")
"""An underscore is a hyphen to some servers, so that the name would be another one there."""
ANSWERED = re.compile(r"request-id|retry-after(-ms)?|x-should-retry|anthropic-ratelimit-[a-z0-9-]+")
BETA, OAUTH_BETA = "anthropic-beta", "oauth-2025-04-20"


@dataclass(frozen=True)
class Credential:
    """The installation's own: an API key, or an OAuth token of a subscription."""

    value: Secret
    is_oauth: bool = False


def token(headers: RawHeaders) -> str:
    """The one token that the client shows, or a Refusal. What it showed is never repeated."""
    shown = {"x-api-key": list[str](), "authorization": list[str]()}
    for name, raw in headers:
        kind = name.decode("latin-1").lower()
        if kind in shown:
            shown[kind].append(_clean(raw))
    if any(len(values) > 1 for values in shown.values()):
        raise Refusal(400, "smuggled", "A credential header was sent more than once.")
    found = {*shown["x-api-key"], *(_bearer(value) for value in shown["authorization"])}
    if len(found) > 1:
        raise Refusal(401, "smuggled", "x-api-key and authorization differ.")
    if not found or not (value := found.pop()):
        raise Refusal(401, "missing", "x-api-key header is required")
    if value.startswith("sk-"):
        raise Refusal(401, "provider_key", "A key of the provider is not accepted here; use the token of the turn.")
    return value


def forwarded(headers: RawHeaders, credential: Credential, dialect: Dialect) -> tuple[list[tuple[str, str]], list[str]]:
    """(what the provider gets, the betas that it does not get)."""
    pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]
    named = {word.strip().lower() for name, value in pairs if name == "connection" for word in value.split(",")}
    dropped = HOP_BY_HOP | OURS | named
    kept = [(name, value) for name, value in pairs if name not in dropped and _may_pass(name)]
    betas, unknown = dialect.betas(value for name, value in kept if name == BETA)
    kept = [(name, value) for name, value in kept if name != BETA and dialect.may_pass(name)]
    if credential.is_oauth:
        betas = [*betas, OAUTH_BETA] if OAUTH_BETA not in betas else betas
        kept.append(("authorization", f"Bearer {credential.value.reveal()}"))
    else:
        kept.append(("x-api-key", credential.value.reveal()))
    if betas:
        kept.append((BETA, ",".join(betas)))
    # identity: what is metered must be readable, and a compressor would hold back the stream
    return [*kept, ("content-type", "application/json"), ("accept-encoding", "identity")], unknown


def returned(headers: Mapping[str, str]) -> dict[str, str]:
    """What the client learns of the provider's headers: not which organisation pays."""
    return {name.lower(): value for name, value in headers.items() if ANSWERED.fullmatch(name.lower())}


def _may_pass(name: str) -> bool:
    aside = name.startswith(("x-forwarded", "forwarded")) or name.endswith(CREDENTIALS)
    return not aside and PLAIN.fullmatch(name) is not None


def _bearer(value: str) -> str:
    scheme, _, rest = value.partition(" ")
    if scheme.lower() != "bearer":
        raise Refusal(401, "missing", "The authorization header must be of the Bearer kind.")
    return rest.strip()


def _clean(value: bytes) -> str:
    text = value.decode("latin-1").strip()
    if any(ord(char) < 0x20 or ord(char) > 0x7E for char in text):
        raise Refusal(400, "smuggled", "A credential header has characters that it must not have.")
    return text
