"""Which repositories the App may see no more, and whether what was held of them is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.models import InstallationId, RepoId
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, many, run


@dataclass(frozen=True)
class Gone(Record):
    """A repository whose data is to be forgotten; nothing of it runs any more."""

    id: RepoId
    owner: str
    name: str


_GONE = """
SELECT repos.id, repos.owner, repos.name FROM repos
WHERE repos.removed_at IS NOT NULL AND repos.purged_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM turns JOIN sessions ON sessions.id = turns.session_id
    JOIN threads ON threads.id = sessions.thread_id
    WHERE threads.repo_id = repos.id AND turns.state <> 'done')
ORDER BY repos.id LIMIT 20
"""
_SESSIONS = """
SELECT sessions.agent_session_id FROM sessions JOIN threads ON threads.id = sessions.thread_id
WHERE threads.repo_id = :repo_id AND sessions.agent_session_id IS NOT NULL
"""
_LINES = """
DELETE FROM events WHERE session_id IN (
    SELECT sessions.id FROM sessions JOIN threads ON threads.id = sessions.thread_id WHERE threads.repo_id = :repo_id)
"""
_WORDS = """
UPDATE turns SET context = NULL, instructions = NULL, agent_result = NULL, prompt = '' WHERE session_id IN (
    SELECT sessions.id FROM sessions JOIN threads ON threads.id = sessions.thread_id WHERE threads.repo_id = :repo_id)
"""


async def removed(store: Store, repos: Sequence[RepoId]) -> None:
    """The App was taken away from these."""
    sql = "UPDATE repos SET removed_at = :at WHERE id = :id AND removed_at IS NULL"
    at = store.now()

    def work(db: Database) -> None:
        for repo in repos:
            run(db, sql, id=repo, at=at)

    await store.write(work)


async def removed_all(store: Store, installation: InstallationId) -> None:
    """The App was taken away from the account."""
    sql = "UPDATE repos SET removed_at = :at WHERE installation_id = :installation AND removed_at IS NULL"
    at = store.now()
    await store.write(lambda db: run(db, sql, installation=installation, at=at))


async def back(store: Store, repos: Sequence[RepoId], installation: InstallationId) -> None:
    """The App was given (again) to these."""
    sql = """
    UPDATE repos SET removed_at = NULL, purged_at = NULL, installation_id = :installation WHERE id = :id
    """

    def work(db: Database) -> None:
        for repo in repos:
            run(db, sql, id=repo, installation=installation)

    await store.write(work)


async def to_purge(store: Store) -> list[Gone]:
    return [Gone.of(row) for row in await store.read(lambda db: many(db, _GONE))]


async def agent_sessions(store: Store, repo: RepoId) -> list[str]:
    rows = await store.read(lambda db: many(db, _SESSIONS, repo_id=repo))
    return [str(row["agent_session_id"]) for row in rows]


async def purged(store: Store, repo: RepoId) -> None:
    """What was said in its sessions is forgotten; that they were, and what they cost, is not."""
    sql = "UPDATE repos SET purged_at = :at WHERE id = :repo_id AND removed_at IS NOT NULL"
    at = store.now()

    def work(db: Database) -> None:
        run(db, _LINES, repo_id=repo)
        run(db, _WORDS, repo_id=repo)
        run(db, "DELETE FROM ci_watches WHERE repo_id = :repo_id", repo_id=repo)
        run(db, "DELETE FROM ci_attempts WHERE repo_id = :repo_id", repo_id=repo)
        run(db, sql, repo_id=repo, at=at)

    await store.write(work)
