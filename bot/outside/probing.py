"""Tries a stored registry with one request that reads, and says in words what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from bot.errors import UserError, VaultError
from bot.outside import registries, services
from bot.outside.client import OutsideClient, OutsideRequest, OutsideTrouble, Patience
from bot.registries.addresses import within
from bot.settings.inside import InsideHosts
from bot.store.outside_services import CredentialKind, OutsideService
from bot.vault import Vault

PATHS = {"npm": "-/ping", "cargo": "config.json"}
"""Paths that every registry of a kind answers; for others, the address itself is asked."""


@dataclass(frozen=True)
class RegistryTrial:
    works: bool
    words: str


async def try_out(service: OutsideService, vault: Vault, inside: InsideHosts) -> RegistryTrial:
    """Ask for its index or its beginning. Nothing of the answer's body is read."""
    client = OutsideClient(inside)
    dialect = registries.dialect_of(service)
    try:
        credential = await services.credential(vault, service)
        address = client.address(dialect.prefix + dialect.index + PATHS.get(service.kind, ""))
        wanted = OutsideRequest("GET", address, credential=credential, patience=Patience(10, 20))
        async with client.ask(wanted, lambda there: within(dialect.prefix, there.url)) as answer:
            return _judged(service, address.host, answer.status)
    except (UserError, VaultError, OutsideTrouble) as error:
        return RegistryTrial(False, str(error))
    finally:
        await client.close()


def _judged(service: OutsideService, host: str, status: int) -> RegistryTrial:
    if status in (401, 403):
        lacks = service.credential is CredentialKind.NONE
        why = "It wants a credential." if lacks else "The credential is wrong, or may not read there."
        return RegistryTrial(False, f"{host} answered {status}. {why}")
    if status == 404:
        words = f"{host} answered 404: it is there, but shows nothing at this address. Some registries do so at their "
        return RegistryTrial(True, f"{words}beginning; if packages are not found, check the path.")
    if status >= 500:
        return RegistryTrial(False, f"{host} has trouble: it answered {status}.")
    return RegistryTrial(True, f"{host} answered {status}: it works.")
