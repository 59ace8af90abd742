"""Who allowed, refused or took back what, and when: rows that are only ever added."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, many, run

_KEYS = {"key": "ANTHROPIC_API_KEY", "token": "CLAUDE_CODE_OAUTH_TOKEN"}


@dataclass(frozen=True)
class AuditEntry(Record):
    id: str
    at: float
    actor: str
    action: str
    subject: str
    detail: str | None


def note(db: Database, entry: AuditEntry) -> None:
    """Add an entry within a larger transaction; the same id is one entry."""
    sql = """
    INSERT INTO audit (id, at, actor, action, subject, detail) VALUES (:id, :at, :actor, :action, :subject, :detail)
    ON CONFLICT (id) DO NOTHING
    """
    run(db, sql, **{name: getattr(entry, name) for name in AuditEntry.__dataclass_fields__})


async def add(store: Store, actor: str, action: str, subject: str, detail: str | None = None) -> None:
    """Add what somebody (`operator`, `github`) did to the service itself."""
    at = store.now()
    await store.write(lambda db: put(db, at, actor, action, subject, detail))


def put(db: Database, at: float, actor: str, action: str, subject: str, detail: str | None = None) -> None:
    """`add` as a part of a larger transaction."""
    note(db, AuditEntry(uuid.uuid4().hex, at, actor, action, subject, detail))


async def about(store: Store, account: str, limit: int) -> list[AuditEntry]:
    """Entries about an account and its keys, the newest first."""
    sql = "SELECT * FROM audit WHERE subject IN (:account, :key, :token) ORDER BY at DESC, id LIMIT :limit"
    subjects = {"account": account, **{name: f"{kind} of {account}" for name, kind in _KEYS.items()}}
    return [AuditEntry.of(row) for row in await store.read(lambda db: many(db, sql, **subjects, limit=limit))]


async def listing(store: Store, limit: int = 1000) -> list[AuditEntry]:
    """Newest first."""
    sql = "SELECT * FROM audit ORDER BY at DESC, id LIMIT :limit"
    return [AuditEntry.of(row) for row in await store.read(lambda db: many(db, sql, limit=limit))]
