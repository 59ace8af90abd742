"""Who changed what about the service itself: kept for operators, never edited."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, many, run


@dataclass(frozen=True)
class Entry(Record):
    at: float
    actor: str
    """A login, `operator`, or `github`."""
    action: str
    subject: str
    detail: str | None


async def note(store: Store, actor: str, action: str, subject: str, detail: str | None = None) -> None:
    at = store.now()
    await store.write(lambda db: noted(db, at, actor, action, subject, detail))


def noted(db: Database, at: float, actor: str, action: str, subject: str, detail: str | None = None) -> None:
    """`note` as a part of a larger transaction."""
    sql = """
    INSERT INTO audit (id, at, actor, action, subject, detail) VALUES (:id, :at, :actor, :action, :subject, :detail)
    """
    run(db, sql, id=uuid.uuid4().hex, at=at, actor=actor, action=action, subject=subject, detail=detail)


async def recent(store: Store, limit: int = 200) -> list[Entry]:
    """Newest first."""
    sql = "SELECT * FROM audit ORDER BY at DESC, id LIMIT :limit"
    return [Entry.of(row) for row in await store.read(lambda db: many(db, sql, limit=limit))]
