"""What the operator does to the running service and its store: pause, requests of the command line, backup, pruning.

A request is left in the store, picked up within a second and answered there. The switch outlives a restart."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path

from bot.store import audit
from bot.store.base import Store
from bot.store.rows import Database, many, one, run


async def paused_at(store: Store) -> float | None:
    """The time since when nothing new is begun; None if nothing is paused."""
    row = await store.read(lambda db: one(db, "SELECT set_at FROM switches WHERE name = 'paused'"))
    return float(row["set_at"]) if row else None


async def pause(store: Store, by: str) -> bool:
    """False when it was so already."""
    at = store.now()

    def work(db: Database) -> bool:
        sql = "INSERT INTO switches (name, set_by, set_at) VALUES ('paused', :by, :at) ON CONFLICT (name) DO NOTHING"
        if not run(db, sql, by=by, at=at):
            return False
        audit.put(db, at, by, "pause", "service")
        return True

    return await store.write(work)


async def resume(store: Store, by: str) -> bool:
    """False when nothing was paused."""
    at = store.now()

    def work(db: Database) -> bool:
        if not run(db, "DELETE FROM switches WHERE name = 'paused'"):
            return False
        audit.put(db, at, by, "resume", "service")
        return True

    return await store.write(work)


@dataclass(frozen=True)
class CliRequest:
    id: str
    kind: str
    body: dict[str, str]


async def leave_request(store: Store, kind: str, body: dict[str, str]) -> str:
    request_id, at = uuid.uuid4().hex, store.now()
    sql = """
    INSERT INTO requests (id, kind, body, state, created_at) VALUES (:id, :kind, :body, 'open', :at)
    """
    await store.write(lambda db: run(db, sql, id=request_id, kind=kind, body=json.dumps(body), at=at))
    return request_id


async def waiting_requests(store: Store) -> list[CliRequest]:
    sql = "SELECT id, kind, body FROM requests WHERE state = 'open' ORDER BY created_at, id"
    rows = await store.read(lambda db: many(db, sql))
    return [CliRequest(row["id"], row["kind"], json.loads(row["body"])) for row in rows]


async def answer_request(store: Store, request_id: str, text: str, *, failed: bool = False) -> None:
    sql = "UPDATE requests SET state = :state, answer = :answer WHERE id = :id AND state = 'open'"
    state = "failed" if failed else "done"

    def work(db: Database) -> None:
        run(db, sql, state=state, answer=text, id=request_id)

    await store.write(work)


async def request_answer(store: Store, request_id: str) -> tuple[bool, str] | None:
    """(whether it was done, the answer), or None while it waits."""
    sql = "SELECT state, answer FROM requests WHERE id = :id"
    row = await store.read(lambda db: one(db, sql, id=request_id))
    if row is None or row["state"] == "open":
        return None
    return row["state"] == "done", row["answer"] or ""


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
    await store.backend.copy(target)


async def check(store: Store) -> list[str]:
    """Problems with the stored data, in the database's words; empty when it is sound."""
    return await store.backend.check()


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
