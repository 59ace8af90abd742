"""The audit trail: who allowed, refused or took back something, and when. Rows are only added."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, run, statement
from bot.store.sought import EVERYTHING, Sought

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
    run(db, sql, **vars(entry))


async def add(store: Store, actor: str, action: str, subject: str, detail: str | None = None) -> None:
    """Add what an actor (`operator`, `github`) did to the service itself."""
    at = store.now()
    await store.write(lambda db: put(db, at, actor, action, subject, detail))


def put(db: Database, at: float, actor: str, action: str, subject: str, detail: str | None = None) -> None:
    """Do what `add` does, within a larger transaction."""
    note(db, AuditEntry(uuid.uuid4().hex, at, actor, action, subject, detail))


async def about(store: Store, account: str, limit: int) -> list[AuditEntry]:
    """Return entries about an account and its keys, newest first."""
    sql = "SELECT * FROM audit WHERE subject IN (:account, :key, :token) ORDER BY at DESC, id LIMIT :limit"
    subjects = {"account": account, **{name: f"{kind} of {account}" for name, kind in _KEYS.items()}}
    return await AuditEntry.many(store, sql, **subjects, limit=limit)


async def listing(store: Store, sought: Sought = EVERYTHING) -> list[AuditEntry]:
    sql = "SELECT * FROM audit WHERE {sought} ORDER BY at DESC, id LIMIT :limit"
    whose = sought.where({"by": "actor", "since": "at"})
    return await AuditEntry.many(store, statement(sql, sought=whose), **sought.values)
