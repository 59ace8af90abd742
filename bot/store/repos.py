"""Which repositories the App may see no more, and whether what was held of them is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bot.kinds import parts
from bot.kinds.parts import OnFork
from bot.models import InstallationId, RepoId, SessionId, TurnKey
from bot.store.base import Store
from bot.store.records import Record, stored
from bot.store.rows import Database, many, one, run


@dataclass(frozen=True)
class Gone(Record):
    """A repository whose data is to be forgotten; nothing of it runs any more."""

    id: RepoId
    owner: str
    name: str


@dataclass(frozen=True)
class Held(Record):
    """A turn of such a repository, by which what lies of it on the host is found."""

    session_id: SessionId
    n: int
    kept: str | None
    payload: dict[str, Any]
    finished_at: float | None
    removed_at: float | None

    @property
    def key(self) -> TurnKey:
        return TurnKey(self.session_id, self.n)

    @property
    def patch(self) -> str | None:
        return parts.part(self.payload, OnFork).patch

    @property
    def is_old(self) -> bool:
        """It had ended before the repository was taken away."""
        return self.finished_at is not None and self.removed_at is not None and self.finished_at < self.removed_at


_GONE = """
SELECT repos.id, repos.owner, repos.name FROM repos
WHERE repos.removed_at IS NOT NULL AND repos.purged_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM turns JOIN sessions ON sessions.id = turns.session_id
    JOIN threads ON threads.id = sessions.thread_id
    WHERE threads.repo_id = repos.id AND turns.state <> 'done')
ORDER BY repos.id LIMIT 20
"""
_SESSIONS = """
SELECT sessions.id, sessions.agent_session_id FROM sessions JOIN threads ON threads.id = sessions.thread_id
WHERE threads.repo_id = :repo_id
"""
_OWN = """
WHERE session_id IN (
    SELECT sessions.id FROM sessions JOIN threads ON threads.id = sessions.thread_id WHERE threads.repo_id = :repo_id)
"""
# What can be told of what was read, said or done there. A bundle that was kept since the App was taken away stays for
# its time: somebody has paid for that work and was told where it is.
_WORDS = """
UPDATE turns SET agent_result = NULL, detail = NULL, prompt = '', files_changed = NULL, verified = NULL, config = NULL,
    kept = CASE WHEN finished_at < :removed_at THEN NULL ELSE kept END
"""
_FORGOTTEN = (
    "DELETE FROM events" + _OWN,  # noqa: S608 - constants
    _WORDS + _OWN,
    "DELETE FROM messages" + _OWN,  # noqa: S608 - constants
    "DELETE FROM questions" + _OWN,  # noqa: S608 - constants
    "DELETE FROM approvals" + _OWN,  # noqa: S608 - constants
    "DELETE FROM samples" + _OWN,  # noqa: S608 - constants
    "DELETE FROM findings WHERE repo_id = :repo_id",
    "DELETE FROM ci_watches WHERE repo_id = :repo_id",
    "DELETE FROM ci_attempts WHERE repo_id = :repo_id",
    "UPDATE deliveries SET body = NULL WHERE repo_id = :repo_id AND state <> 'received'",
)
_HELD = """
SELECT turns.session_id, turns.n, turns.kept, turns.payload, turns.finished_at, repos.removed_at
FROM turns JOIN sessions ON sessions.id = turns.session_id JOIN threads ON threads.id = sessions.thread_id
JOIN repos ON repos.id = threads.repo_id WHERE threads.repo_id = :repo_id
"""
_PAYLOAD = "UPDATE turns SET payload = :payload WHERE session_id = :session AND n = :n"


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


async def named(store: Store, name: str) -> RepoId | None:
    """Of those that the App may see, by `owner/name` as GitHub compares them."""
    sql = "SELECT id FROM repos WHERE removed_at IS NULL AND LOWER(owner || '/' || name) = :name ORDER BY id LIMIT 1"
    row = await store.read(lambda db: one(db, sql, name=name.lower()))
    return RepoId(row["id"]) if row else None


async def to_purge(store: Store) -> list[Gone]:
    return [Gone.of(row) for row in await store.read(lambda db: many(db, _GONE))]


async def turns_held(store: Store, repo: RepoId) -> list[Held]:
    return [Held.of(row) for row in await store.read(lambda db: many(db, _HELD, repo_id=repo))]


async def sessions_of(store: Store, repo: RepoId) -> dict[SessionId, str | None]:
    """With the agent's own name for each."""
    rows = await store.read(lambda db: many(db, _SESSIONS, repo_id=repo))
    return {SessionId(row["id"]): row["agent_session_id"] for row in rows}


async def purged(store: Store, repo: RepoId) -> None:
    """What was said in its sessions is forgotten; that they were, and what they cost, is not."""
    sql = "UPDATE repos SET purged_at = :at WHERE id = :repo_id AND removed_at IS NOT NULL"
    at = store.now()

    def work(db: Database) -> None:
        removed = one(db, "SELECT removed_at FROM repos WHERE id = :repo_id", repo_id=repo)
        for forgotten in _FORGOTTEN:
            run(db, forgotten, repo_id=repo, removed_at=removed["removed_at"] if removed else at)
        for one_of in many(db, _HELD, repo_id=repo):
            payload = stored(parts.without_words(msgspec.json.decode(one_of["payload"])))
            run(db, _PAYLOAD, session=one_of["session_id"], n=one_of["n"], payload=payload)
        run(db, sql, repo_id=repo, at=at)

    await store.write(work)
