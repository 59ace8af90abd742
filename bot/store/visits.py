"""Who has signed in to the pages, by the digest of the mark in their browser; a visit ends by itself."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, one, run


@dataclass(frozen=True)
class Visit(Record):
    user_id: int
    login: str
    ends_at: float


async def begin_visit(store: Store, mark: str, user_id: int, login: str, seconds: float) -> None:
    """Those that have ended are forgotten on the way."""
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
    """In whatever browser; how many there were."""
    return await store.write(lambda db: run(db, "DELETE FROM visits WHERE user_id = :user", user=user_id))


def _digest(mark: str) -> str:
    return hashlib.sha256(mark.encode()).hexdigest()
