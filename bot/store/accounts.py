"""What owners of accounts have set for their installations, and who has signed in to the pages.

A change of a setting is in the audit trail. A visit is known by the digest of the mark in its browser and ends by
itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from bot.account_settings import Choices, SettingChoice, Value, version
from bot.models import InstallationId
from bot.store import audit
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, many, one, run

_PUT = """
INSERT INTO installation_settings (installation_id, name, value, set_by, set_at)
VALUES (:id, :name, :value, :by, :at)
ON CONFLICT (installation_id, name) DO UPDATE SET value = excluded.value, set_by = excluded.set_by,
    set_at = excluded.set_at, changes = installation_settings.changes + 1
"""


@dataclass(frozen=True)
class SettingsChange:
    """What is to be so from now on; None takes a value back."""

    wanted: Mapping[str, Value | None]
    by: str
    account: str
    seen: int
    """The version that whoever changes it has looked at."""


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
    """The names of what is new; None, and nothing is changed, where somebody else has changed something meanwhile."""
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
            detail = f"{name}: {_said(now.get(name))} → {_said(value)}"
            audit.put(db, at, wish.by, "setting changed", wish.account, detail)
        return changed

    return await store.write(work)


async def session_caps(store: Store) -> dict[InstallationId, int]:
    """Caps on sessions at once, by installation; without the accounts that set none."""
    sql = "SELECT installation_id, value FROM installation_settings WHERE name = 'sessions' AND value IS NOT NULL"
    rows = await store.read(lambda db: many(db, sql))
    return {InstallationId(row["installation_id"]): msgspec.json.decode(row["value"], type=int) for row in rows}


async def forget_settings(store: Store, installation: InstallationId) -> None:
    sql = "DELETE FROM installation_settings WHERE installation_id = :id"
    await store.write(lambda db: run(db, sql, id=installation))


def _said(value: Value | None) -> str:
    return "not set" if value is None else f"{value}"


@dataclass(frozen=True)
class Visit(Record):
    user_id: int
    login: str
    ends_at: float


async def begin_visit(store: Store, mark: str, user_id: int, login: str, seconds: float) -> None:
    """Store the visit, and forget those that have ended."""
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
    row = await store.read(lambda db: one(db, sql, mark=_digest(mark), at=at))
    return Visit.of(row) if row else None


async def end_visit(store: Store, mark: str) -> None:
    await store.write(lambda db: run(db, "DELETE FROM visits WHERE mark_sha256 = :mark", mark=_digest(mark)))


async def end_visits_of(store: Store, user_id: int) -> int:
    """End all visits of a person; how many there were."""
    return await store.write(lambda db: run(db, "DELETE FROM visits WHERE user_id = :user", user=user_id))


def _digest(mark: str) -> str:
    return hashlib.sha256(mark.encode()).hexdigest()
