"""Snapshots that are ready, being made, or condemned: to be removed from the cloud."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from bot.models import InstallationId, RepoId
from bot.store.base import Database, Store
from bot.store.records import Record
from bot.store.rows import Row, one, run


@dataclass(frozen=True)
class SnapshotBase:
    """The content of a snapshot: with the same base, the newer one replaces the older."""

    repo_id: RepoId
    template: str
    setup_sha256: str


@dataclass(frozen=True)
class StoredSnapshot(Record):
    name: str
    base: SnapshotBase
    setup: tuple[str, ...]
    egress: tuple[str, ...]
    commit_sha: str
    branch: str
    snapshot_id: str | None
    shallow: tuple[str, ...]
    attempts: int
    created_at: float

    @classmethod
    def of(cls, row: Row) -> Self:
        return cls(
            name=row["name"],
            base=SnapshotBase(RepoId(row["repo_id"]), row["template"], row["setup_sha256"]),
            setup=tuple(json.loads(row["setup"])),
            egress=tuple(json.loads(row["egress"])),
            commit_sha=row["commit_sha"],
            branch=row["branch"],
            snapshot_id=row["snapshot_id"],
            shallow=tuple(json.loads(row["shallow"])),
            attempts=row["attempts"],
            created_at=row["created_at"],
        )


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
    INSERT INTO snapshots (name, repo_id, template, setup_sha256, setup, egress, commit_sha, branch, state,
                           created_at)
    VALUES (:name, :repo_id, :template, :setup_sha256, :setup, :egress, :commit_sha, :branch, 'making',
            :created_at)
    """
    base, texts = vars(new.base), {"commit_sha": new.commit_sha, "branch": new.branch}
    lists = {"setup": json.dumps(new.setup), "egress": json.dumps(new.egress)}

    def work(db: Database) -> bool:
        if one(db, since, **base, name=new.name, not_since=not_since):
            return False
        return run(db, insert, **base, **texts, **lists, name=new.name, created_at=new.created_at) > 0

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
