"""Which commit GitHub has made and signed in the place of one of ours: written before anything else is done with it."""

from __future__ import annotations

from bot.models import SessionId
from bot.store.base import Store
from bot.store.rows import many, one, run


async def signed_for(store: Store, session: SessionId, commit: str) -> str | None:
    sql = "SELECT signed_sha FROM signed_commits WHERE session_id = :session AND commit_sha = :commit"
    row = await store.read(lambda db: one(db, sql, session=session, commit=commit))
    return str(row["signed_sha"]) if row else None


async def signed_in(store: Store, session: SessionId) -> dict[str, str]:
    """All of them: what GitHub has made, and of which commit of ours."""
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
