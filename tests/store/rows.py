"""Rows that tests of the store write and read."""

from __future__ import annotations

from collections.abc import Callable

from bot.store.base import Database, Store
from bot.store.rows import many, run

INSERT = """
INSERT INTO deliveries (guid, event, body_sha256, received_at, state) VALUES (:guid, 'issues', 'x', 1.0, 'received')
"""


def insert(guid: str) -> Callable[[Database], int]:
    return lambda db: run(db, INSERT, guid=guid)


async def guids(store: Store) -> list[str]:
    rows = await store.read(lambda db: many(db, "SELECT guid FROM deliveries ORDER BY guid"))
    return [row["guid"] for row in rows]
