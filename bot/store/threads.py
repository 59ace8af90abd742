"""Where things happen: installations, repositories, and the issues and pull requests that sessions hang on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.models import InstallationId, Repo, RepoId, Thread
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, many, one, run


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


# GitHub does not promise order. Numbers are not used again, so deleted is final; else the newer word counts.
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
    """Safe in any order of events."""
    values = {name: getattr(installation, name) for name in InstallationRow.__dataclass_fields__}
    await store.write(lambda db: run(db, _PUT_INSTALLATION, **values))


async def installation(store: Store, installation_id: InstallationId) -> InstallationRow | None:
    row = await store.read(lambda db: one(db, "SELECT * FROM installations WHERE id = :id", id=installation_id))
    return InstallationRow.of(row) if row else None


async def installations(store: Store) -> list[InstallationRow]:
    rows = await store.read(lambda db: many(db, "SELECT * FROM installations ORDER BY account, id"))
    return [InstallationRow.of(row) for row in rows]


async def accounts(store: Store) -> dict[InstallationId, str]:
    """Of the installations that are there, also of those whose own event came before our time."""
    rows = await store.read(lambda db: many(db, _ACCOUNTS))
    return {InstallationId(row["id"]): row["account"] for row in rows}


async def upsert_repo(store: Store, repo: Repo, installation: InstallationId) -> None:
    """By its number, so that a rename or a transfer is followed."""
    at = store.now()
    await store.write(lambda db: put_repo(db, repo, installation, at))


async def home(store: Store, repo_id: RepoId, number: int) -> str:
    """The id of the thread that an issue or pull request belongs to, whether there is a row yet or not."""
    return await store.read(lambda db: home_of(db, repo_id, number))


async def tell_refused(store: Store, thread: Thread) -> bool:
    """True once per thread: the one time that a refused person is answered."""
    at = store.now()

    def work(db: Database) -> bool:
        home = put_thread(db, thread, at)
        return run(db, "UPDATE threads SET told_refused = 1 WHERE id = :id AND told_refused = 0", id=home) == 1

    return await store.write(work)


def put_repo(db: Database, repo: Repo, installation: InstallationId, at: float) -> None:
    run(
        db,
        _PUT_REPO,
        id=repo.id,
        installation_id=installation,
        owner=repo.owner,
        name=repo.name,
        private=int(repo.private),
        default_branch=repo.default_branch,
        updated_at=at,
    )


def put_thread(db: Database, thread: Thread, at: float) -> str:
    """Store it with its repository; the id of its home, which for a pull request of ours is the thread of its issue."""
    put_repo(db, thread.repo, thread.installation, at)
    home = home_of(db, thread.repo.id, thread.number)
    if home == thread_id(thread.repo.id, thread.number):
        values = {"repo_id": thread.repo.id, "installation_id": thread.installation, "number": thread.number}
        run(db, _PUT_THREAD, id=home, is_pull=int(thread.is_pull), **values)
    return home


def home_of(db: Database, repo_id: RepoId, number: int) -> str:
    row = one(db, _OF_PULL, repo_id=repo_id, number=number)
    return str(row["id"]) if row else thread_id(repo_id, number)
