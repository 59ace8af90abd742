"""The credential of a stored MCP server: a fixed header, or an access token that we get at its token address."""

from __future__ import annotations

import asyncio
import base64
import time
from collections import deque
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import msgspec

from bot.errors import UserError
from bot.outside import echoes, services
from bot.outside.client import OutsideClient, OutsideRequest, Patience
from bot.settings import Secret
from bot.store import accounts
from bot.store.accounts import Sealed
from bot.store.base import Store
from bot.store.outside_services import OutsideService
from bot.vault import Vault

TOKEN_ADDRESS, GRANT, OAUTH_SCOPE = "token_address", "grant", "scope"
"""Options of a server with OAuth. Its credential is `basic`: the client's id, and its secret or refresh token."""
CLIENT_CREDENTIALS, REFRESH_TOKEN = "client_credentials", "refresh_token"
MOST_BYTES = 64 << 10
MOST_TOKEN = 16 << 10
SPARE_SECONDS = 30.0
USUAL_SECONDS = 300.0
TOKEN_SECONDS = 20.0
MOST_HIDDEN = 32

Header = tuple[str, Secret]


class _Granted(msgspec.Struct):
    access_token: str
    kind: str = msgspec.field(name="token_type", default="bearer")
    expires_in: float = USUAL_SECONDS
    refresh_token: str | None = None


@dataclass(frozen=True)
class _AccessToken:
    value: Secret
    until: float
    """On the loop's clock."""
    of: Sealed
    """The stored secret that it came from; another one needs another token."""


class McpCredentials:
    """Finds the header for a server. Access tokens live in memory only."""

    def __init__(self, store: Store, vault: Vault, client: OutsideClient) -> None:
        self._store = store
        self._vault = vault
        self._client = client
        self._tokens: dict[tuple[int, str], _AccessToken] = {}
        self._asking: dict[tuple[int, str], asyncio.Lock] = {}
        self._shown: dict[tuple[int, str], deque[str]] = {}

    async def header(self, service: OutsideService, fresh: bool) -> Header | None:
        """`fresh`: the server refused the last one. Raise UserError or OutsideTrouble."""
        if GRANT not in service.options:
            found = await services.credential(self._vault, service)
            if found is not None:
                self._hide(service, *echoes.parts(found[1].reveal()))
            return found
        key = (service.installation, service.name)
        async with self._asking.setdefault(key, asyncio.Lock()):
            row = await accounts.credential_of(self._store, service.secret_name, service.installation)
            if row is None:
                raise UserError(f"The secret of {service.name} is not stored any more. Store it again.")
            known = self._tokens.get(key)
            if known is None or fresh or known.of != row or known.until <= time.monotonic():
                known = self._tokens[key] = await self._granted(service, row)
        return "authorization", Secret(f"Bearer {known.value.reveal()}")

    def hidden(self, service: OutsideService) -> tuple[str, ...]:
        """List every text that no answer of the server may show: all that was lately sent to it."""
        return tuple(self._shown.get((service.installation, service.name), ()))

    def _hide(self, service: OutsideService, *texts: str) -> None:
        kept = self._shown.setdefault((service.installation, service.name), deque(maxlen=MOST_HIDDEN))
        for text in texts:
            if text and text not in kept:
                kept.append(text)
                self._vault.hide(Secret(text))

    async def _granted(self, service: OutsideService, row: Sealed) -> _AccessToken:
        client_secret, refresh = _parts(service, self._vault.read(row).reveal())
        self._hide(service, client_secret, refresh)
        form = {"grant_type": service.options[GRANT]}
        if refresh:
            form["refresh_token"] = refresh
        if scope := service.options.get(OAUTH_SCOPE):
            form["scope"] = scope
        granted = await self._ask(service, form, client_secret)
        token = Secret(granted.access_token)
        self._hide(service, token.reveal(), granted.refresh_token or "")
        if granted.refresh_token and granted.refresh_token != refresh:
            row = await self._replaced(service, row, client_secret, granted.refresh_token)
        lasts = max(granted.expires_in - SPARE_SECONDS, 1.0)
        return _AccessToken(token, time.monotonic() + min(lasts, 86_400.0), row)

    async def _ask(self, service: OutsideService, form: dict[str, str], client_secret: str) -> _Granted:
        headers = [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")]
        credential = None
        if client_secret:
            pair = f"{quote(service.credential_name, safe='')}:{quote(client_secret, safe='')}"
            credential = ("authorization", Secret(f"Basic {base64.b64encode(pair.encode()).decode()}"))
        else:
            form = {**form, "client_id": service.credential_name}
        address = self._client.address(service.options[TOKEN_ADDRESS])
        request = OutsideRequest(
            "POST", address, headers, urlencode(form).encode(), credential, Patience(read_seconds=TOKEN_SECONDS)
        )
        async with asyncio.timeout(TOKEN_SECONDS), self._client.ask(request) as answer:
            body = await answer.whole(MOST_BYTES)
            if answer.status != 200:
                raise UserError(f"Its token address {address.host} answered with the status {answer.status}.")
        try:
            granted = msgspec.json.decode(body, type=_Granted)
        except (msgspec.DecodeError, RecursionError):
            raise UserError(f"Its token address {address.host} sent no token.") from None
        if granted.kind.lower() != "bearer" or not _is_token(granted.access_token):
            raise UserError(f"Its token address {address.host} sent a token of an unknown kind.")
        return granted

    async def _replaced(self, service: OutsideService, row: Sealed, client_secret: str, refresh: str) -> Sealed:
        """Store the next refresh token in place of the used one, unless somebody has stored another secret."""
        if not _is_token(refresh):
            raise UserError("Its token address sent a refresh token of an unknown kind.")
        whole = Secret(f"{client_secret} {refresh}".strip())
        sealed = await self._vault.seal(service.secret_name, service.installation, whole)
        await self._store.write(lambda db: accounts.replace_credential(db, row, sealed))
        return await accounts.credential_of(self._store, service.secret_name, service.installation) or row


def _parts(service: OutsideService, secret: str) -> tuple[str, str]:
    """Return (the client's secret, the refresh token), as the owner gave them in one text."""
    if service.options.get(GRANT) == REFRESH_TOKEN:
        first, _, rest = secret.rpartition(" ")
        return first.strip(), rest
    return secret, ""


def _is_token(text: str) -> bool:
    return 0 < len(text) <= MOST_TOKEN and text.isascii() and text.isprintable() and " " not in text
