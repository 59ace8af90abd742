"""Rows of encrypted secrets, by name and installation (0: the operator's own); nothing here can read them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bot.models import InstallationId
from bot.store import base
from bot.store.base import Store
from bot.store.rows import Database, Row, many, one, run

OPERATOR = InstallationId(0)
TABLE, COLUMN = "credentials", "ciphertext"

_PUT_CREDENTIAL = """
INSERT INTO credentials (name, installation_id, ciphertext, updated_at) VALUES (:name, :installation, :ciphertext, :at)
ON CONFLICT (name, installation_id) DO UPDATE SET ciphertext = excluded.ciphertext, updated_at = excluded.updated_at
"""
_REPLACE = """
UPDATE credentials SET ciphertext = :ciphertext
WHERE name = :name AND installation_id = :installation AND ciphertext = :before
"""
_ALL = "SELECT name, installation_id, ciphertext, updated_at FROM credentials ORDER BY installation_id, name"
_SOME = """
SELECT name, installation_id, ciphertext, updated_at FROM credentials
WHERE installation_id IN (0, :installation)
"""
_ONE = """
SELECT name, installation_id, ciphertext, updated_at FROM credentials
WHERE name = :name AND installation_id = :installation
"""


@dataclass(frozen=True)
class Sealed:
    """One row."""

    name: str
    installation: InstallationId
    ciphertext: str
    updated_at: float


async def put(store: Store, name: str, installation: InstallationId, ciphertext: str) -> None:
    at = store.now()
    values = {"name": name, "installation": installation, "ciphertext": ciphertext, "at": at}
    await store.write(lambda db: run(db, _PUT_CREDENTIAL, **values))


async def of(store: Store, name: str, installation: InstallationId) -> Sealed | None:
    row = await store.read(lambda db: one(db, _ONE, name=name, installation=installation))
    return _sealed(row) if row else None


async def around(store: Store, installation: InstallationId) -> list[Sealed]:
    """The installation's and the operator's."""
    return [_sealed(row) for row in await store.read(lambda db: many(db, _SOME, installation=installation))]


async def every(store: Store) -> list[Sealed]:
    return await store.read(all_of)


async def remove(store: Store, name: str, installation: InstallationId) -> bool:
    sql = "DELETE FROM credentials WHERE name = :name AND installation_id = :installation"
    return await store.write(lambda db: run(db, sql, name=name, installation=installation)) == 1


async def remove_all(store: Store) -> int:
    """Also of those that nobody can read any more."""
    return await store.write(lambda db: run(db, "DELETE FROM credentials"))


async def remove_of(store: Store, installation: InstallationId) -> int:
    sql = "DELETE FROM credentials WHERE installation_id = :installation AND installation_id <> 0"
    return await store.write(lambda db: run(db, sql, installation=installation))


def all_of(db: Database) -> list[Sealed]:
    return [_sealed(row) for row in many(db, _ALL)]


def replace(db: Database, row: Sealed, ciphertext: str) -> bool:
    """False when it was changed meanwhile: then the newer value stands."""
    values = {"name": row.name, "installation": row.installation, "before": row.ciphertext}
    return run(db, _REPLACE, ciphertext=ciphertext, **values) == 1


def peek(path: Path) -> list[Sealed]:
    """Rows of a file that nobody has opened yet, which is left as it is; none if it cannot be read."""
    return base.peek(path, all_of) or []


def _sealed(row: Row) -> Sealed:
    return Sealed(row["name"], InstallationId(row["installation_id"]), row["ciphertext"], row["updated_at"])
