"""The operator's switch and tools: pause, requests of the command line, backup, pruning.

The service picks up a stored request within a second and answers it there. A pause survives a restart."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path

from bot.store import audit
from bot.store.base import Store
from bot.store.files import KeptFiles
from bot.store.rows import Database, run


async def paused_at(store: Store) -> float | None:
    """Return when new turns stopped starting; None if nothing is paused."""
    row = await store.one("SELECT set_at FROM switches WHERE name = 'paused'")
    return float(row["set_at"]) if row else None


async def pause(store: Store, by: str) -> bool:
    at = store.now()

    def work(db: Database) -> bool:
        sql = "INSERT INTO switches (name, set_by, set_at) VALUES ('paused', :by, :at) ON CONFLICT (name) DO NOTHING"
        if not run(db, sql, by=by, at=at):
            return False
        audit.put(db, at, by, "pause", "service")
        return True

    return await store.write(work)


async def resume(store: Store, by: str) -> bool:
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
    await store.run(sql, id=request_id, kind=kind, body=json.dumps(body), at=at)
    return request_id


async def waiting_requests(store: Store) -> list[CliRequest]:
    sql = "SELECT id, kind, body FROM requests WHERE state = 'open' ORDER BY created_at, id"
    return [CliRequest(row["id"], row["kind"], json.loads(row["body"])) for row in await store.many(sql)]


async def answer_request(store: Store, request_id: str, text: str, *, failed: bool = False) -> None:
    sql = "UPDATE requests SET state = :state, answer = :answer WHERE id = :id AND state = 'open'"
    await store.run(sql, state="failed" if failed else "done", answer=text, id=request_id)


async def request_answer(store: Store, request_id: str) -> tuple[bool, str] | None:
    """Return whether it succeeded, and the answer; None while it waits."""
    row = await store.one("SELECT state, answer FROM requests WHERE id = :id", id=request_id)
    if row is None or row["state"] == "open":
        return None
    return row["state"] == "done", row["answer"] or ""


DAY = 86_400.0
LEAST_DAYS = 8.0
"""GitHub can send a delivery again for seven days; until then its row shows that we know it."""

_BATCH = 2_000
"""Rows per transaction, so that a webhook waits for one batch, not for all."""

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
    "tool_calls": """
        DELETE FROM tool_calls WHERE id IN (
            SELECT tool_calls.id FROM tool_calls
            JOIN turns ON turns.session_id = tool_calls.session_id AND turns.n = tool_calls.turn
            WHERE turns.state = 'done' AND turns.finished_at < :before LIMIT :batch)
        """,
    "bulletins": """
        DELETE FROM bulletins WHERE id IN (
            SELECT id FROM bulletins WHERE state <> 'waiting' AND at < :before LIMIT :batch)
        """,
    "fetched_packages": """
        DELETE FROM fetched_packages WHERE session_id IN (
            SELECT session_id FROM fetched_packages WHERE at < :before LIMIT :batch) AND at < :before
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
    """Write a consistent, private copy to a new file, while the service runs."""
    await store.backend.copy(target)


async def check(store: Store, files: KeptFiles) -> list[str]:
    """Return problems with the stored data: what the database finds, else stored files that are not whole."""
    return await store.backend.check() or await files.missing()


async def prune(store: Store, days: float) -> dict[str, int]:
    """Delete what is settled and old (see `_PRUNED`), and return how many rows of each table.

    Sessions, turns and spending stay: they are small, and a thread can continue."""
    before = store.now() - max(days, LEAST_DAYS) * DAY
    return {table: await _prune(store, sql, before) for table, sql in _PRUNED.items()}


async def _prune(store: Store, sql: str, before: float) -> int:
    total = 0
    while True:
        count = await store.run(sql, before=before, batch=_BATCH)
        total += count
        if count < _BATCH:
            return total
