"""What the command line asks of the running service: left in the store, picked up within a second, answered there."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass

from bot.store.base import Store
from bot.store.rows import Database, many, one, run


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
