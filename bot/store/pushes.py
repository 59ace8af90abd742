"""What we have put into repositories: commits that GitHub has signed in the place of ours, and refs with rescued work.

Which commit stands for which is written before anything else is done with it."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models import SessionId
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import many, one, run


async def signed_for(store: Store, session: SessionId, commit: str) -> str | None:
    sql = "SELECT signed_sha FROM signed_commits WHERE session_id = :session AND commit_sha = :commit"
    row = await store.read(lambda db: one(db, sql, session=session, commit=commit))
    return str(row["signed_sha"]) if row else None


async def signed_in(store: Store, session: SessionId) -> dict[str, str]:
    """The commits that GitHub has made, each with the one of ours that it stands for."""
    sql = "SELECT signed_sha, commit_sha FROM signed_commits WHERE session_id = :session"
    rows = await store.read(lambda db: many(db, sql, session=session))
    return {str(row["signed_sha"]): str(row["commit_sha"]) for row in rows}


async def put_signed(store: Store, session: SessionId, commit: str, signed: str) -> None:
    """The first one counts: another was made by a try that was thought lost, and nothing stands on it."""
    sql = """
    INSERT INTO signed_commits (session_id, commit_sha, signed_sha, at) VALUES (:session, :commit, :signed, :at)
    ON CONFLICT (session_id, commit_sha) DO NOTHING
    """
    at = store.now()
    await store.write(lambda db: run(db, sql, session=session, commit=commit, signed=signed, at=at))


_DUE = """
SELECT turns.session_id, turns.n, turns.rescue_ref, turns.commit_sha FROM turns
JOIN sessions ON sessions.id = turns.session_id JOIN threads ON threads.id = sessions.thread_id
JOIN repos ON repos.id = threads.repo_id
WHERE turns.rescue_ref IS NOT NULL AND turns.rescue_gone = 0 AND turns.commit_sha IS NOT NULL
  AND COALESCE(turns.rescue_until, turns.finished_at + :usual) < :now AND repos.removed_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM turns AS open WHERE open.session_id = turns.session_id AND open.state <> 'done')
ORDER BY turns.session_id, turns.n LIMIT 20
"""


@dataclass(frozen=True)
class Rescue(Record):
    """A ref, and the commit that we have put there."""

    session_id: SessionId
    n: int
    rescue_ref: str
    commit_sha: str


async def rescues_due(store: Store, usual: float) -> list[Rescue]:
    """None of a session that goes on: its next turn may begin there. `usual`: where no time was promised."""
    now = store.now()
    return [Rescue.of(row) for row in await store.read(lambda db: many(db, _DUE, now=now, usual=usual))]


async def rescue_gone(store: Store, rescue: Rescue) -> None:
    sql = "UPDATE turns SET rescue_gone = 1 WHERE session_id = :session AND n = :n"
    await store.write(lambda db: run(db, sql, session=rescue.session_id, n=rescue.n))
