"""Outside services: what an account's owner, or the operator for all accounts, has stored about registries and servers.

Their secrets are sealed credentials beside the model's key. A service and its secret are one transaction: an address
that changed under a secret would send it to another host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from bot.models import InstallationId
from bot.store import audit
from bot.store.accounts import OPERATOR, write_credential
from bot.store.base import Database, Store
from bot.store.records import Record
from bot.store.rows import run, statement


class Purpose(StrEnum):
    REGISTRY = "registry"
    MCP = "mcp"
    RECEIVER = "receiver"


class CredentialKind(StrEnum):
    NONE = "none"
    BASIC = "basic"
    BEARER = "bearer"
    HEADER = "header"
    SIGNATURE = "signature"
    """The secret is in no header: it holds the whole address and the key that signs (`outside/receivers`)."""


@dataclass(frozen=True)
class OutsideService(Record):
    installation: InstallationId
    """0: the operator's, for every account."""
    purpose: Purpose
    name: str
    kind: str
    """The package client or the protocol that speaks to it."""
    address: str
    stored_by: str = ""
    stored_at: float = 0.0
    scope: str = ""
    """Scopes of packages, or prefixes of their names; empty: it answers for everything."""
    options: dict[str, str] = field(default_factory=dict)
    """Further values that its purpose or kind knows."""
    credential: CredentialKind = CredentialKind.NONE
    credential_name: str = ""
    """The user for `basic`, the header's name for `header`."""

    @property
    def secret_name(self) -> str:
        """Name its secret in the vault."""
        return f"{self.purpose}:{self.name}"


_SELECT = "SELECT *, installation_id AS installation FROM outside_services WHERE {where} ORDER BY name, installation_id"
_PUT = """
INSERT INTO outside_services (installation_id, purpose, name, kind, address, scope, options, credential,
    credential_name, stored_by, stored_at)
VALUES (:installation, :purpose, :name, :kind, :address, :scope, :options, :credential, :credential_name, :stored_by,
    :stored_at)
ON CONFLICT (installation_id, purpose, name) DO UPDATE SET kind = excluded.kind, address = excluded.address,
    scope = excluded.scope, options = excluded.options, credential = excluded.credential,
    credential_name = excluded.credential_name, stored_by = excluded.stored_by, stored_at = excluded.stored_at
"""
_REMOVE = "DELETE FROM outside_services WHERE installation_id = :installation AND purpose = :purpose AND name = :name"
_FORGET = "DELETE FROM credentials WHERE installation_id = :installation AND name = :name"


async def put(store: Store, service: OutsideService, ciphertext: str | None, *, account: str) -> None:
    """Store it in place of one with its name, also of that one's secret; the audit trail says who did."""
    at = store.now()
    values = {**vars(service), "stored_at": at, "options": msgspec.json.encode(service.options).decode()}

    def work(db: Database) -> None:
        run(db, _PUT, **values)
        run(db, _FORGET, installation=service.installation, name=service.secret_name)
        if ciphertext is not None:
            write_credential(db, service.secret_name, service.installation, ciphertext, at)
        detail = f"{service.name}: {service.kind} at {service.address}, credential: {service.credential}"
        audit.put(db, at, service.stored_by, f"{service.purpose} stored", account, detail)

    await store.write(work)


async def remove(store: Store, service: OutsideService, *, by: str, account: str) -> bool:
    """Forget it and its secret; False if it is not there."""
    at = store.now()

    def work(db: Database) -> bool:
        run(db, _FORGET, installation=service.installation, name=service.secret_name)
        about = {"installation": service.installation, "purpose": service.purpose, "name": service.name}
        is_gone = run(db, _REMOVE, **about) == 1
        if is_gone:
            audit.put(db, at, by, f"{service.purpose} removed", account, service.name)
        return is_gone

    return await store.write(work)


async def of_installation(store: Store, purpose: Purpose, installation: InstallationId) -> list[OutsideService]:
    """Return what this account has stored itself, or the operator for all."""
    where = "purpose = :purpose AND installation_id = :installation"
    return await OutsideService.many(store, statement(_SELECT, where=where), purpose=purpose, installation=installation)


async def every(store: Store, purpose: Purpose) -> list[OutsideService]:
    return await OutsideService.many(store, statement(_SELECT, where="purpose = :purpose"), purpose=purpose)


async def usable(
    store: Store, purpose: Purpose, installation: InstallationId, names: Iterable[str]
) -> dict[str, OutsideService]:
    """Return those of these names that an account may use, by name: its own, else the operator's."""
    where, wanted = "purpose = :purpose AND installation_id IN (0, :installation)", frozenset(names)
    rows = await OutsideService.many(store, statement(_SELECT, where=where), purpose=purpose, installation=installation)
    rows.sort(key=lambda one: one.installation != OPERATOR)
    return {one.name: one for one in rows if one.name in wanted}


async def forget_of(store: Store, installation: InstallationId) -> None:
    """Forget all of an account that is gone; its credentials go by themselves."""
    await store.run(
        "DELETE FROM outside_services WHERE installation_id = :id AND installation_id <> 0", id=installation
    )
