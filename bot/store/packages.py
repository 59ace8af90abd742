"""Packages that a turn's environment has got through the gateway: which, how often, how large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.models import SessionId, TurnKey
from bot.store.base import Database, Store
from bot.store.records import OfTurn, Record
from bot.store.rows import one, run

MOST_OF_A_TURN = 5_000
OTHERS = "(others)"
"""Stands for all further packages of a turn that gets more than it can need."""


@dataclass(frozen=True)
class FetchedPackage(OfTurn):
    registry: str
    name: str
    version: str
    downloads: int
    bytes: int
    from_cache: int
    """How many of the downloads came from the cache of this machine."""


@dataclass(frozen=True)
class FetchedSum(Record):
    packages: int
    downloads: int
    bytes: int
    from_cache: int


_ADD = """
INSERT INTO fetched_packages (session_id, turn, registry, name, version, downloads, bytes, from_cache, at)
VALUES (:session_id, :turn, :registry, :name, :version, :downloads, :bytes, :from_cache, :at)
ON CONFLICT (session_id, turn, registry, name, version) DO UPDATE SET
    downloads = fetched_packages.downloads + excluded.downloads,
    bytes = fetched_packages.bytes + excluded.bytes,
    from_cache = fetched_packages.from_cache + excluded.from_cache, at = excluded.at
"""
_COUNT = "SELECT COUNT(*) AS number FROM fetched_packages WHERE session_id = :session AND turn = :turn"


async def add(store: Store, found: Sequence[FetchedPackage]) -> None:
    at = store.now()

    def work(db: Database) -> None:
        full = set[TurnKey]()
        for key in {each.key for each in found}:
            row = one(db, _COUNT, session=key.session, turn=key.n)
            if row is not None and row["number"] >= MOST_OF_A_TURN:
                full.add(key)
        for each in found:
            values = vars(each) | ({"registry": "", "name": OTHERS, "version": ""} if each.key in full else {})
            run(db, _ADD, **values, at=at)

    await store.write(work)


async def of_session(store: Store, session: SessionId, limit: int) -> list[FetchedPackage]:
    sql = """
    SELECT session_id, turn, registry, name, version, downloads, bytes, from_cache FROM fetched_packages
    WHERE session_id = :session ORDER BY turn, registry, name, version LIMIT :limit
    """
    return await FetchedPackage.many(store, sql, session=session, limit=limit)


async def sum_of(store: Store, key: TurnKey) -> FetchedSum | None:
    """Return the turn's figures; None if it has got nothing."""
    sql = """
    SELECT COUNT(*) AS packages, COALESCE(SUM(downloads), 0) AS downloads, COALESCE(SUM(bytes), 0) AS bytes,
        COALESCE(SUM(from_cache), 0) AS from_cache
    FROM fetched_packages WHERE session_id = :session AND turn = :turn
    """
    found = await FetchedSum.one(store, sql, session=key.session, turn=key.n)
    return found if found is not None and found.packages else None
