"""Snapshots that are ready, being made, or condemned: to be removed from the cloud."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from bot.models import InstallationId, RepoId
from bot.store.base import Database, Store
from bot.store.records import Record, stored
from bot.store.rows import one, run


@dataclass(frozen=True)
class SnapshotBase:
    """The content of a snapshot: with the same base, the newer one replaces the older."""

    repo_id: RepoId
    template: str
    setup_sha256: str


@dataclass(frozen=True)
class StoredSnapshot(SnapshotBase, Record):
    name: str
    setup: tuple[str, ...]
    egress: tuple[str, ...]
    commit_sha: str
    branch: str
    created_at: float
    snapshot_id: str | None = None
    shallow: tuple[str, ...] = ()
    attempts: int = 0
    registries: tuple[str, ...] = ()

    @property
    def base(self) -> SnapshotBase:
        return SnapshotBase(self.repo_id, self.template, self.setup_sha256)


async def ready(store: Store, base: SnapshotBase) -> StoredSnapshot | None:
    """Return the newest usable one."""
    sql = """
    SELECT * FROM snapshots WHERE repo_id = :repo_id AND template = :template AND setup_sha256 = :setup_sha256
       AND state = 'ready' ORDER BY created_at DESC, name LIMIT 1
    """
    return await StoredSnapshot.one(store, sql, **vars(base))


async def plan(store: Store, new: StoredSnapshot, *, not_since: float) -> bool:
    """Have it made, unless one of the same base is being made or is newer than `not_since`."""
    since = """
    SELECT name FROM snapshots WHERE repo_id = :repo_id AND template = :template AND setup_sha256 = :setup_sha256
       AND (state = 'making' OR created_at > :not_since OR name = :name)
    """
    insert = """
    INSERT INTO snapshots (name, repo_id, template, setup_sha256, setup, egress, registries, commit_sha, branch,
                           state, created_at)
    VALUES (:name, :repo_id, :template, :setup_sha256, :setup, :egress, :registries, :commit_sha, :branch,
            'making', :created_at)
    """
    columns = {name: stored(value) for name, value in vars(new).items()}

    def work(db: Database) -> bool:
        return not one(db, since, **columns, not_since=not_since) and run(db, insert, **columns) > 0

    return await store.write(work)


async def making(store: Store) -> list[StoredSnapshot]:
    return await _in_state(store, "making")


async def condemned(store: Store) -> list[StoredSnapshot]:
    return await _in_state(store, "condemned")


async def tried(store: Store, name: str) -> None:
    sql = "UPDATE snapshots SET attempts = attempts + 1 WHERE name = :name"
    await store.run(sql, name=name)


async def finish(store: Store, made: StoredSnapshot, snapshot_id: str, shallow: Sequence[str]) -> None:
    """Use it from now on instead of older ones. One condemned meanwhile stays so, but we know its id."""
    sql = """
    UPDATE snapshots SET snapshot_id = :id, shallow = :shallow,
       state = CASE WHEN state = 'making' THEN 'ready' ELSE state END WHERE name = :name
    """
    older = """
    UPDATE snapshots SET state = 'condemned' WHERE state = 'ready' AND name <> :name
       AND repo_id = :repo_id AND template = :template AND setup_sha256 = :setup_sha256
    """

    def work(db: Database) -> None:
        run(db, sql, id=snapshot_id, shallow=json.dumps(list(shallow)), name=made.name)
        run(db, older, name=made.name, **vars(made.base))

    await store.write(work)


async def condemn(store: Store, name: str) -> None:
    sql = "UPDATE snapshots SET state = 'condemned' WHERE name = :name"
    await store.run(sql, name=name)


async def condemn_older(store: Store, before: float) -> None:
    sql = "UPDATE snapshots SET state = 'condemned' WHERE state = 'ready' AND created_at < :before"
    if await store.one("SELECT name FROM snapshots WHERE created_at < :before", before=before):
        await store.run(sql, before=before)


async def condemn_of_repo(store: Store, repo_id: RepoId) -> None:
    sql = "UPDATE snapshots SET state = 'condemned' WHERE repo_id = :repo_id"
    await store.run(sql, repo_id=repo_id)


async def condemn_of_installation(store: Store, installation: InstallationId) -> None:
    sql = """
    UPDATE snapshots SET state = 'condemned'
    WHERE repo_id IN (SELECT id FROM repos WHERE installation_id = :id)
    """
    await store.run(sql, id=installation)


async def forget(store: Store, name: str) -> None:
    await store.run("DELETE FROM snapshots WHERE name = :name", name=name)


async def _in_state(store: Store, state: str) -> list[StoredSnapshot]:
    sql = "SELECT * FROM snapshots WHERE state = :state ORDER BY created_at, name"
    return await StoredSnapshot.many(store, sql, state=state)
