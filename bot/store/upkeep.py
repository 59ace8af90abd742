"""Backup, check and pruning: what an operator (or the clock) does to the store as a whole."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from bot.errors import StoreError
from bot.store.base import Store
from bot.store.rows import Database, run

DAY = 86_400.0
LEAST_DAYS = 8.0
"""GitHub can send a delivery again for up to seven days: until then its row is what tells that it is known."""

_BATCH = 2_000
"""Rows a transaction: the webhook path waits for one batch, not for all."""

_PRUNED = {
    "deliveries": """
        DELETE FROM deliveries WHERE guid IN (
            SELECT guid FROM deliveries WHERE state <> 'received' AND received_at < :before LIMIT :batch)
        """,
    "events": """
        DELETE FROM events WHERE (session_id, seq) IN (
            SELECT events.session_id, events.seq FROM events
            JOIN turns ON turns.session_id = events.session_id AND turns.n = events.turn
            WHERE turns.state = 'done' AND turns.finished_at < :before LIMIT :batch)
        """,
    "samples": """
        DELETE FROM samples WHERE (session_id, turn, at) IN (
            SELECT samples.session_id, samples.turn, samples.at FROM samples
            JOIN turns ON turns.session_id = samples.session_id AND turns.n = samples.turn
            WHERE turns.state = 'done' AND turns.finished_at < :before LIMIT :batch)
        """,
    "gateway_tokens": """
        DELETE FROM gateway_tokens WHERE token_sha256 IN (
            SELECT token_sha256 FROM gateway_tokens WHERE expires_at < :before LIMIT :batch)
        """,
    "requests": """
        DELETE FROM requests WHERE id IN (
            SELECT id FROM requests WHERE state <> 'open' AND created_at < :before LIMIT :batch)
        """,
}


async def backup(store: Store, target: Path) -> None:
    """A consistent copy, private, while the service runs; the target must not exist."""
    await store.read(lambda db: _copy(db, target))


async def check(store: Store) -> list[str]:
    """What is wrong with the file, as SQLite says it; empty when it is sound."""

    def work(db: Database) -> list[str]:
        found = [str(row[0]) for row in db.execute("PRAGMA integrity_check(20)")]
        broken = [f"{row[0]}: row {row[1]} points to nothing" for row in db.execute("PRAGMA foreign_key_check")]
        return [line for line in found if line != "ok"] + broken

    return await store.read(work)


async def prune(store: Store, days: float) -> dict[str, int]:
    """Forget settled deliveries, lines and samples of ended turns, dead tokens and answered requests; how many of each.

    Sessions, turns and spending stay: a thread can be taken up again, and they are small."""
    before = store.now() - max(days, LEAST_DAYS) * DAY
    return {table: await _prune(store, sql, before) for table, sql in _PRUNED.items()}


async def _prune(store: Store, sql: str, before: float) -> int:
    total = 0
    while True:
        count = await store.write(lambda db: run(db, sql, before=before, batch=_BATCH))
        total += count
        if count < _BATCH:
            return total


def _copy(db: Database, target: Path) -> None:
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StoreError(f"The backup cannot be written to {target}: {error.strerror}.") from None
    try:
        with closing(sqlite3.connect(target)) as copy:
            db.conn.backup(copy)
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        raise StoreError(f"The backup to {target} failed: {error}.") from None
