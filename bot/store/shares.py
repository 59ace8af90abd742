"""Public links to one session each: known by the digest of a token, which nobody who reads the store can use."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from bot.models import InstallationId, RepoId, SessionId
from bot.store import audit
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, run


@dataclass(frozen=True)
class Share(Record):
    session_id: SessionId
    made_by: str
    made_by_id: int
    of_private: bool
    """Its maker confirmed that strangers may see a private repository's session."""
    made_at: float
    ends_at: float


# The App must still be installed and see the repository; a suspended installation shows nothing.
_LIVE = """
SELECT shares.* FROM shares
JOIN sessions ON sessions.id = shares.session_id JOIN threads ON threads.id = sessions.thread_id
JOIN repos ON repos.id = threads.repo_id
LEFT JOIN installations ON installations.id = repos.installation_id
WHERE shares.ends_at > :now AND repos.removed_at IS NULL AND COALESCE(installations.state, 'active') = 'active'
"""
_INSERT = """
INSERT INTO shares (token_sha256, session_id, made_by, made_by_id, of_private, made_at, ends_at)
VALUES (:token, :session_id, :made_by, :made_by_id, :of_private, :made_at, :ends_at)
"""
_IN_REPO = """
DELETE FROM shares WHERE session_id IN (
    SELECT sessions.id FROM sessions JOIN threads ON threads.id = sessions.thread_id WHERE threads.repo_id = :repo)
"""
_IN_INSTALLATION = """
DELETE FROM shares WHERE session_id IN (
    SELECT sessions.id FROM sessions JOIN threads ON threads.id = sessions.thread_id
    JOIN repos ON repos.id = threads.repo_id WHERE repos.installation_id = :installation)
"""


async def put(store: Store, share: Share, token: str, detail: str) -> None:
    """Store a link in the place of the session's earlier one."""

    def work(db: Database) -> None:
        run(db, "DELETE FROM shares WHERE session_id = :id OR ends_at <= :at", id=share.session_id, at=share.made_at)
        run(db, _INSERT, **{**vars(share), "of_private": int(share.of_private)}, token=_digest(token))
        audit.put(db, share.made_at, share.made_by, "share link made", share.session_id, detail)

    await store.write(work)


async def end(store: Store, session: SessionId, by: str) -> bool:
    """Return False if there was none."""
    at = store.now()

    def work(db: Database) -> bool:
        gone = run(db, "DELETE FROM shares WHERE session_id = :id", id=session)
        if gone:
            audit.put(db, at, by, "share link ended", session)
        return bool(gone)

    return await store.write(work)


async def by_token(store: Store, token: str) -> Share | None:
    sql = _LIVE + " AND shares.token_sha256 = :token"
    return await Share.one(store, sql, token=_digest(token), now=store.now())


async def of_session(store: Store, session: SessionId) -> Share | None:
    sql = _LIVE + " AND shares.session_id = :session"
    return await Share.one(store, sql, session=session, now=store.now())


def end_in_repos(db: Database, at: float, repos: Sequence[RepoId]) -> None:
    """End the links of repositories that were taken away, so that they stay ended if the App comes back."""
    for repo in repos:
        if run(db, _IN_REPO, repo=repo):
            audit.put(db, at, "github", "share links ended", str(repo), "the repository was taken away")


def end_in_installation(db: Database, at: float, installation: InstallationId) -> None:
    if run(db, _IN_INSTALLATION, installation=installation):
        audit.put(db, at, "github", "share links ended", str(installation), "the App was removed")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
