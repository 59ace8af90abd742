"""Installations, repositories, threads, signed commits and rescue refs, and how the data of removed ones goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from bot.kinds import shape
from bot.kinds.shape import OnFork
from bot.models import InstallationId, Repo, RepoId, SessionId, Thread, TurnKey
from bot.store import api_tokens, shares
from bot.store.base import Store
from bot.store.records import Record, stored
from bot.store.rows import Database, many, one, run, statement


@dataclass(frozen=True)
class RemovedRepo(Record):
    """A repository without running turns whose data has to go."""

    id: RepoId
    owner: str
    name: str


@dataclass(frozen=True)
class RemovedTurn(Record):
    """A turn of a removed repository, with what locates its files on the host."""

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
        return shape.part(self.payload, OnFork).patch

    @property
    def is_old(self) -> bool:
        """True if it had ended before the repository was removed."""
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
# Columns with what was read, said or done there. A bundle kept since the App was removed stays for its time: someone
# has paid for that work and knows where it is.
_WORDS = """
UPDATE turns SET agent_result = NULL, detail = NULL, prompt = '', files_changed = NULL, verified = NULL, config = NULL,
    kept = CASE WHEN finished_at < :removed_at THEN NULL ELSE kept END
"""
_FORGOTTEN = (
    statement("DELETE FROM events {own}", own=_OWN),
    _WORDS + _OWN,
    statement("DELETE FROM messages {own}", own=_OWN),
    statement("DELETE FROM questions {own}", own=_OWN),
    statement("DELETE FROM approvals {own}", own=_OWN),
    statement("DELETE FROM samples {own}", own=_OWN),
    statement("DELETE FROM tool_calls {own}", own=_OWN),
    statement("DELETE FROM shares {own}", own=_OWN),
    "DELETE FROM findings WHERE repo_id = :repo_id",
    "DELETE FROM dismissals WHERE repo_id = :repo_id",
    "DELETE FROM ci_watches WHERE repo_id = :repo_id",
    "DELETE FROM ci_attempts WHERE repo_id = :repo_id",
    "UPDATE repos SET config_problem = NULL WHERE id = :repo_id",
    "UPDATE deliveries SET body = NULL WHERE repo_id = :repo_id AND state <> 'received'",
)
_HELD = """
SELECT turns.session_id, turns.n, turns.kept, turns.payload, turns.finished_at, repos.removed_at
FROM turns JOIN sessions ON sessions.id = turns.session_id JOIN threads ON threads.id = sessions.thread_id
JOIN repos ON repos.id = threads.repo_id WHERE threads.repo_id = :repo_id
"""
_PAYLOAD = "UPDATE turns SET payload = :payload WHERE session_id = :session AND n = :n"


async def mark_removed(store: Store, repos: Sequence[RepoId]) -> None:
    """Note that the App was removed from these."""
    sql = "UPDATE repos SET removed_at = :at WHERE id = :id AND removed_at IS NULL"
    at = store.now()

    def work(db: Database) -> None:
        for repo in repos:
            run(db, sql, id=repo, at=at)
        shares.end_in_repos(db, at, repos)

    await store.write(work)


async def mark_all_removed(store: Store, installation: InstallationId) -> None:
    """Note that the App was removed from the account."""
    sql = "UPDATE repos SET removed_at = :at WHERE installation_id = :installation AND removed_at IS NULL"
    at = store.now()

    def work(db: Database) -> None:
        shares.end_in_installation(db, at, installation)
        api_tokens.end_in_installation(db, at, installation)
        run(db, sql, installation=installation, at=at)

    await store.write(work)


async def mark_returned(store: Store, repos: Sequence[RepoId], installation: InstallationId) -> None:
    """Note that the App was added (again) to these."""
    sql = """
    UPDATE repos SET removed_at = NULL, purged_at = NULL, installation_id = :installation WHERE id = :id
    """

    def work(db: Database) -> None:
        for repo in repos:
            run(db, sql, id=repo, installation=installation)

    await store.write(work)


async def named(store: Store, name: str) -> RepoId | None:
    """Find the repository that the App may see as `owner/name`; GitHub ignores case in names."""
    sql = "SELECT id FROM repos WHERE removed_at IS NULL AND LOWER(owner || '/' || name) = :name ORDER BY id LIMIT 1"
    row = await store.one(sql, name=name.lower())
    return RepoId(row["id"]) if row else None


async def to_purge(store: Store) -> list[RemovedRepo]:
    return await RemovedRepo.many(store, _GONE)


async def turns_held(store: Store, repo: RepoId) -> list[RemovedTurn]:
    return await RemovedTurn.many(store, _HELD, repo_id=repo)


async def sessions_of(store: Store, repo: RepoId) -> dict[SessionId, str | None]:
    """Return the sessions of a repository, with the agent's own name for each."""
    rows = await store.many(_SESSIONS, repo_id=repo)
    return {SessionId(row["id"]): row["agent_session_id"] for row in rows}


async def are_purged(store: Store, repos: Sequence[RepoId]) -> list[RepoId]:
    """Return those of which nothing may lie anywhere any more."""
    found = []
    for repo in repos:
        row = await store.one("SELECT purged_at FROM repos WHERE id = :id", id=repo)
        if row is not None and row["purged_at"] is not None:
            found.append(repo)
    return found


async def purged(store: Store, repo: RepoId) -> None:
    """Forget the words of its sessions; the sessions and their costs stay."""
    sql = "UPDATE repos SET purged_at = :at WHERE id = :repo_id AND removed_at IS NOT NULL"
    at = store.now()

    def work(db: Database) -> None:
        removed = one(db, "SELECT removed_at FROM repos WHERE id = :repo_id", repo_id=repo)
        for forgotten in _FORGOTTEN:
            run(db, forgotten, repo_id=repo, removed_at=removed["removed_at"] if removed else at)
        for turn in many(db, _HELD, repo_id=repo):
            payload = stored(shape.without_words(msgspec.json.decode(turn["payload"])))
            run(db, _PAYLOAD, session=turn["session_id"], n=turn["n"], payload=payload)
        run(db, sql, repo_id=repo, at=at)

    await store.write(work)


class InstallationState(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"
    DELETED = "deleted"


@dataclass(frozen=True)
class InstallationRow(Record):
    id: InstallationId
    account: str
    account_id: int
    state: InstallationState
    updated_at: float


# GitHub promises no order. Deleted is final, because numbers are not used again; else the newer event counts.
_PUT_INSTALLATION = """
INSERT INTO installations (id, account, account_id, state, updated_at)
VALUES (:id, :account, :account_id, :state, :updated_at)
ON CONFLICT (id) DO UPDATE SET account = excluded.account, account_id = excluded.account_id, state = excluded.state,
                               updated_at = excluded.updated_at
WHERE installations.state <> 'deleted'
  AND (excluded.state = 'deleted' OR excluded.updated_at >= installations.updated_at)
"""

_PUT_REPO = """
INSERT INTO repos (id, installation_id, owner, name, private, default_branch, updated_at)
VALUES (:id, :installation_id, :owner, :name, :private, :default_branch, :updated_at)
ON CONFLICT (id) DO UPDATE SET installation_id = excluded.installation_id, owner = excluded.owner, name = excluded.name,
                               private = excluded.private, default_branch = excluded.default_branch,
                               updated_at = excluded.updated_at
"""

_PUT_THREAD = """
INSERT INTO threads (id, repo_id, installation_id, number, is_pull)
VALUES (:id, :repo_id, :installation_id, :number, :is_pull)
ON CONFLICT (id) DO UPDATE SET installation_id = excluded.installation_id, is_pull = excluded.is_pull
"""

_ACCOUNTS = """
SELECT id, account FROM installations WHERE state <> 'deleted'
UNION SELECT installation_id, owner FROM repos WHERE installation_id NOT IN (SELECT id FROM installations)
ORDER BY 2, 1
"""

# A pull request that we opened shares the thread of its issue.
_OF_PULL = """
SELECT threads.id FROM threads JOIN sessions ON sessions.thread_id = threads.id
WHERE threads.repo_id = :repo_id AND sessions.pull_number = :number
ORDER BY sessions.created_at DESC, sessions.id LIMIT 1
"""


def thread_id(repo_id: RepoId, number: int) -> str:
    return f"{repo_id}#{number}"


async def upsert_installation(store: Store, installation: InstallationRow) -> None:
    await store.run(_PUT_INSTALLATION, **vars(installation))


async def installation(store: Store, installation_id: InstallationId) -> InstallationRow | None:
    return await InstallationRow.one(store, "SELECT * FROM installations WHERE id = :id", id=installation_id)


async def installations(store: Store) -> list[InstallationRow]:
    return await InstallationRow.many(store, "SELECT * FROM installations ORDER BY account, id")


async def installed_accounts(store: Store) -> dict[InstallationId, str]:
    """Return accounts that have the App, including those whose installation event we never got."""
    return {InstallationId(row["id"]): row["account"] for row in await store.many(_ACCOUNTS)}


async def installation_of(store: Store, repo: RepoId) -> InstallationId:
    row = await store.one("SELECT installation_id FROM repos WHERE id = :id", id=repo)
    return InstallationId(row["installation_id"] if row else 0)


async def upsert_repo(store: Store, repo: Repo, installation: InstallationId) -> None:
    """Store it by its number, which renames and transfers keep."""
    at = store.now()
    await store.write(lambda db: put_repo(db, repo, installation, at))


async def home_thread(store: Store, repo_id: RepoId, number: int) -> str:
    """Return the id of the thread that an issue or pull request belongs to, even without a row."""
    return await store.read(lambda db: home_of(db, repo_id, number))


async def has_told_refusal(store: Store, thread: Thread) -> bool:
    """Tell whether we have answered a refused person on this thread; one answer is enough."""

    def work(db: Database) -> bool:
        home = home_of(db, thread.repo.id, thread.number)
        return one(db, "SELECT 1 AS told FROM threads WHERE id = :id AND told_refused = 1", id=home) is not None

    return await store.read(work)


async def note_refusal(store: Store, thread: Thread) -> None:
    """Note that we have answered a refused person, once the answer is at GitHub."""
    at = store.now()

    def work(db: Database) -> None:
        run(db, "UPDATE threads SET told_refused = 1 WHERE id = :id", id=put_thread(db, thread, at))

    await store.write(work)


def put_repo(db: Database, repo: Repo, installation: InstallationId, at: float) -> None:
    run(db, _PUT_REPO, **vars(repo), installation_id=installation, updated_at=at)


def put_thread(db: Database, thread: Thread, at: float) -> str:
    """Store it with its repository, and return its thread's id; a pull request of ours has its issue's thread."""
    put_repo(db, thread.repo, thread.installation, at)
    home = home_of(db, thread.repo.id, thread.number)
    if home == thread_id(thread.repo.id, thread.number):
        values = {"repo_id": thread.repo.id, "installation_id": thread.installation, "number": thread.number}
        run(db, _PUT_THREAD, id=home, is_pull=thread.is_pull, **values)
    return home


def home_of(db: Database, repo_id: RepoId, number: int) -> str:
    row = one(db, _OF_PULL, repo_id=repo_id, number=number)
    return str(row["id"]) if row else thread_id(repo_id, number)


async def signed_for(store: Store, session: SessionId, commit: str) -> str | None:
    sql = "SELECT signed_sha FROM signed_commits WHERE session_id = :session AND commit_sha = :commit"
    row = await store.one(sql, session=session, commit=commit)
    return str(row["signed_sha"]) if row else None


async def signed_in(store: Store, session: SessionId) -> dict[str, str]:
    """Map the commits that GitHub has made to the ones of ours that they replace."""
    rows = await store.many("SELECT * FROM signed_commits WHERE session_id = :session", session=session)
    return {str(row["signed_sha"]): str(row["commit_sha"]) for row in rows}


async def put_signed(store: Store, session: SessionId, commit: str, signed: str) -> None:
    """Store it unless there is one: another is from a try that seemed lost, and nothing builds on it."""
    sql = """
    INSERT INTO signed_commits (session_id, commit_sha, signed_sha, at) VALUES (:session, :commit, :signed, :at)
    ON CONFLICT (session_id, commit_sha) DO NOTHING
    """
    await store.run(sql, session=session, commit=commit, signed=signed, at=store.now())


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
    """A rescue ref and the commit that we pushed there."""

    session_id: SessionId
    n: int
    rescue_ref: str
    commit_sha: str


async def rescues_due(store: Store, usual: float) -> list[Rescue]:
    """Return expired refs; `usual` is their time if none was promised. A session with an open turn keeps its refs,
    because the turn may start there."""
    return await Rescue.many(store, _DUE, now=store.now(), usual=usual)


async def rescue_gone(store: Store, rescue: Rescue) -> None:
    sql = "UPDATE turns SET rescue_gone = 1 WHERE session_id = :session AND n = :n"
    await store.run(sql, session=rescue.session_id, n=rescue.n)
