"""Accounts: what their owners have set, their own repository, their sealed credentials, who has signed in to the pages.

Changes of settings are in the audit trail. A visit has the digest of the mark in its browser, and it expires."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from bot.account_settings import Choices, SettingChoice, Value, version
from bot.models import InstallationId, Repo
from bot.settings import Address
from bot.store import audit, base
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, many, run

_PUT = """
INSERT INTO installation_settings (installation_id, name, value, set_by, set_at)
VALUES (:id, :name, :value, :by, :at)
ON CONFLICT (installation_id, name) DO UPDATE SET value = excluded.value, set_by = excluded.set_by,
    set_at = excluded.set_at, changes = installation_settings.changes + 1
"""


@dataclass(frozen=True)
class SettingsChange:
    """New values for an account's settings; None takes a value back."""

    wanted: Mapping[str, Value | None]
    by: str
    account: str
    seen: int
    """The version that the person saw."""


async def settings_of(store: Store, installation: InstallationId) -> Choices:
    return await store.read(lambda db: read_settings(db, installation))


def read_settings(db: Database, installation: InstallationId) -> Choices:
    rows = many(db, "SELECT * FROM installation_settings WHERE installation_id = :id", id=installation)
    return {
        row["name"]: SettingChoice(
            msgspec.json.decode(row["value"]) if row["value"] else None, row["set_by"], row["set_at"], row["changes"]
        )
        for row in rows
    }


async def change_settings(store: Store, installation: InstallationId, wish: SettingsChange) -> list[str] | None:
    """Return the names of changed settings. None: someone else changed one meanwhile, and this change did nothing."""
    at = store.now()

    def work(db: Database) -> list[str] | None:
        known = read_settings(db, installation)
        if version(known) != wish.seen:
            return None
        now = {name: one.value for name, one in known.items()}
        changed = [name for name, value in wish.wanted.items() if now.get(name) != value]
        for name in changed:
            value = wish.wanted[name]
            stored = None if value is None else msgspec.json.encode(value).decode()
            run(db, _PUT, id=installation, name=name, value=stored, by=wish.by, at=at)
            before, after = ("not set" if one is None else str(one) for one in (now.get(name), value))
            audit.put(db, at, wish.by, "setting changed", wish.account, f"{name}: {before} → {after}")
        return changed

    return await store.write(work)


async def session_caps(store: Store) -> dict[InstallationId, int]:
    """Return how many sessions may run at once, for each installation that has set it."""
    sql = "SELECT installation_id, value FROM installation_settings WHERE name = 'sessions' AND value IS NOT NULL"
    rows = await store.many(sql)
    return {InstallationId(row["installation_id"]): msgspec.json.decode(row["value"], type=int) for row in rows}


async def forget_settings(store: Store, installation: InstallationId) -> None:
    def work(db: Database) -> None:
        run(db, "DELETE FROM installation_settings WHERE installation_id = :id", id=installation)
        run(db, "DELETE FROM account_repositories WHERE installation_id = :id", id=installation)

    await store.write(work)


@dataclass(frozen=True)
class AccountRepository(Record):
    """An account's `.github`, as we last read it."""

    repo: Repo | None
    """None: it has none, or the App is not installed on it."""
    config: str | None
    problem: str | None
    know_how: bool
    read_at: float


async def own_repository(store: Store, installation: InstallationId) -> AccountRepository | None:
    sql = "SELECT repo, config, problem, know_how, read_at FROM account_repositories WHERE installation_id = :id"
    return await AccountRepository.one(store, sql, id=installation)


async def put_own_repository(store: Store, installation: InstallationId, found: AccountRepository) -> None:
    sql = """
    INSERT INTO account_repositories (installation_id, repo, config, problem, know_how, read_at)
    VALUES (:id, :repo, :config, :problem, :know_how, :at)
    ON CONFLICT (installation_id) DO UPDATE SET repo = excluded.repo, config = excluded.config,
        problem = excluded.problem, know_how = excluded.know_how, read_at = excluded.read_at
    """
    repo = None if found.repo is None else msgspec.json.encode(found.repo).decode()
    values = {"repo": repo, "config": found.config, "problem": found.problem, "know_how": int(found.know_how)}
    await store.run(sql, id=installation, at=found.read_at, **values)


async def doubt_own_repository(store: Store, installation: InstallationId) -> None:
    """Have it read again before it is next used."""
    await store.run("UPDATE account_repositories SET read_at = 0 WHERE installation_id = :id", id=installation)


@dataclass(frozen=True)
class Visit(Record):
    user_id: int
    login: str
    ends_at: float


async def begin_visit(store: Store, mark: str, user_id: int, login: str, seconds: float) -> None:
    at = store.now()
    sql = """
    INSERT INTO visits (mark_sha256, user_id, login, began_at, ends_at) VALUES (:mark, :user, :login, :at, :ends)
    """

    def work(db: Database) -> None:
        run(db, "DELETE FROM visits WHERE ends_at <= :at", at=at)
        run(db, sql, mark=_digest(mark), user=user_id, login=login, at=at, ends=at + seconds)

    await store.write(work)


async def visit(store: Store, mark: str) -> Visit | None:
    sql, at = "SELECT * FROM visits WHERE mark_sha256 = :mark AND ends_at > :at", store.now()
    return await Visit.one(store, sql, mark=_digest(mark), at=at)


async def end_visit(store: Store, mark: str) -> None:
    await store.run("DELETE FROM visits WHERE mark_sha256 = :mark", mark=_digest(mark))


async def end_visits_of(store: Store, user_id: int) -> int:
    return await store.run("DELETE FROM visits WHERE user_id = :user", user=user_id)


def _digest(mark: str) -> str:
    return hashlib.sha256(mark.encode()).hexdigest()


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
_SELECT = "SELECT name, installation_id AS installation, ciphertext, updated_at FROM credentials "


@dataclass(frozen=True)
class Sealed(Record):
    name: str
    installation: InstallationId
    ciphertext: str
    updated_at: float


async def put_credential(store: Store, name: str, installation: InstallationId, ciphertext: str) -> None:
    at = store.now()
    await store.write(lambda db: write_credential(db, name, installation, ciphertext, at))


def write_credential(db: Database, name: str, installation: InstallationId, ciphertext: str, at: float) -> None:
    """Do what `put_credential` does, within a larger transaction."""
    run(db, _PUT_CREDENTIAL, name=name, installation=installation, ciphertext=ciphertext, at=at)


async def credential_of(store: Store, name: str, installation: InstallationId) -> Sealed | None:
    sql = _SELECT + "WHERE name = :name AND installation_id = :installation"
    return await Sealed.one(store, sql, name=name, installation=installation)


async def credentials_around(store: Store, installation: InstallationId) -> list[Sealed]:
    """Return the credentials of the installation and of the operator."""
    return await Sealed.many(store, _SELECT + "WHERE installation_id IN (0, :installation)", installation=installation)


async def every_credential(store: Store) -> list[Sealed]:
    return await store.read(credentials_of)


async def remove_credential(store: Store, name: str, installation: InstallationId) -> bool:
    sql = "DELETE FROM credentials WHERE name = :name AND installation_id = :installation"
    return await store.run(sql, name=name, installation=installation) == 1


async def remove_credentials(store: Store) -> int:
    """Remove all, including those that no key opens."""
    return await store.run("DELETE FROM credentials")


async def remove_credentials_of(store: Store, installation: InstallationId) -> int:
    sql = "DELETE FROM credentials WHERE installation_id = :installation AND installation_id <> 0"
    return await store.run(sql, installation=installation)


def credentials_of(db: Database) -> list[Sealed]:
    return [Sealed.of(row) for row in many(db, _SELECT + "ORDER BY installation_id, name")]


def replace_credential(db: Database, row: Sealed, ciphertext: str) -> bool:
    """Replace it unless it was changed meanwhile."""
    values = {"name": row.name, "installation": row.installation, "before": row.ciphertext}
    return run(db, _REPLACE, ciphertext=ciphertext, **values) == 1


def peek_credential(where: Address) -> list[Sealed]:
    """Read a database that is not open yet, without changing it; empty if it cannot be read."""
    return base.place(where).peek(credentials_of) or []
