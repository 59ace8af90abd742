"""Puts an account's outside service and its secret into the store, and makes the header that carries the secret."""

from __future__ import annotations

import base64
import re

from bot.errors import UserError
from bot.outside import addresses
from bot.settings import Secret
from bot.settings.inside import InsideHosts
from bot.store import outside_services
from bot.store.base import Store
from bot.store.outside_services import CredentialKind, OutsideService
from bot.vault import Vault

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_USER = re.compile(r"[!-9;-~]{1,200}")
_TAKEN = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade", "te", "trailer", "accept"}
    | {"cookie", "expect", "range", "accept-encoding", "user-agent"}
)


async def keep(
    store: Store, vault: Vault, service: OutsideService, secret: Secret | None, *, account: str, inside: InsideHosts
) -> None:
    """Store a service with its secret, in place of one with its name. Its kind and options are the caller's to check.

    A change needs the secret again: kept under another address, it would go to another host."""
    check(service, secret, inside)
    sealed = await vault.seal(service.secret_name, service.installation, secret) if secret is not None else None
    await outside_services.put(store, service, sealed, account=account)


def check(service: OutsideService, secret: Secret | None, inside: InsideHosts) -> None:
    """Raise UserError for what may not be stored."""
    if not NAME.fullmatch(service.name):
        raise UserError("The name must be 1 to 40 lower-case letters, digits and hyphens, such as `internal-npm`.")
    addresses.read(service.address, inside)
    wants = service.credential is not CredentialKind.NONE
    if wants != (secret is not None and bool(secret.reveal().strip())):
        raise UserError(
            f"The credential `{service.credential}` needs its secret."
            if wants
            else "A secret needs a kind of credential: basic, bearer or header."
        )
    if service.credential is CredentialKind.BASIC and not _USER.fullmatch(service.credential_name):
        raise UserError("The credential `basic` needs a user name, without spaces and colons.")
    if service.credential is CredentialKind.HEADER:
        name = service.credential_name
        if not _HEADER.fullmatch(name) or name.lower() in _TAKEN:
            raise UserError("The credential `header` needs the name of a header such as X-Api-Key.")


async def credential(vault: Vault, service: OutsideService) -> tuple[str, Secret] | None:
    """Return the header's name and value; None if the service needs none. Call it for each request."""
    if service.credential in (CredentialKind.NONE, CredentialKind.SIGNATURE):
        return None
    secret = await vault.get(service.secret_name, service.installation)
    if secret is None:
        raise UserError(f"The secret of {service.name} is not stored any more. Store it again.")
    if service.credential is CredentialKind.HEADER:
        return service.credential_name, secret
    if service.credential is CredentialKind.BEARER:
        value = Secret(f"Bearer {secret.reveal()}")
    else:
        pair = f"{service.credential_name}:{secret.reveal()}"
        value = Secret(f"Basic {base64.b64encode(pair.encode()).decode()}")
        vault.hide(Secret(value.reveal().removeprefix("Basic ")))
    return "authorization", value
