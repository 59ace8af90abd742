"""The ledger of webhooks: each GUID once, its body until it is settled, and why it was not acted upon."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from bot.models import DeliveryId, SessionId
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, many, one, run


class DeliveryState(StrEnum):
    """What became of a delivery."""

    RECEIVED = "received"
    ACTED = "acted"
    IGNORED = "ignored"
    REFUSED = "refused"
    FAILED = "failed"


class Addition(StrEnum):
    """What `add` found."""

    ADDED = "added"
    DUPLICATE = "duplicate"
    """The same GUID with the same body: GitHub sent it again."""
    CONFLICT = "conflict"
    """The same GUID with another body: the first one counts."""


Added, Duplicate, Conflict = Addition.ADDED, Addition.DUPLICATE, Addition.CONFLICT


@dataclass(frozen=True)
class NewDelivery:
    """A webhook as the edge received it; without a body there is nothing to act upon."""

    guid: DeliveryId
    event: str
    body_sha256: str
    body: str | None = None
    action: str | None = None
    state: DeliveryState = DeliveryState.RECEIVED
    reason: str | None = None
    installation_id: int | None = None
    repo_id: int | None = None
    number: int | None = None
    sender: str | None = None


@dataclass(frozen=True)
class Delivery(Record):
    """A row of the ledger."""

    guid: DeliveryId
    event: str
    action: str | None
    body_sha256: str
    body: str | None
    received_at: float
    state: DeliveryState
    reason: str | None
    installation_id: int | None
    repo_id: int | None
    number: int | None
    sender: str | None
    attempts: int
    session_id: SessionId | None


_INSERT = """
INSERT INTO deliveries (guid, event, action, body_sha256, body, received_at, state, reason, installation_id, repo_id,
                        number, sender)
VALUES (:guid, :event, :action, :body_sha256, :body, :received_at, :state, :reason, :installation_id, :repo_id,
        :number, :sender)
ON CONFLICT (guid) DO NOTHING
"""


UNSEEN = ""
"""In the place of a digest: it came by GitHub's log, which gives the payload anew and not the bytes that were sent."""


def digest(body: bytes | bytearray) -> str:
    """What tells two bodies apart."""
    return hashlib.sha256(body).hexdigest()


async def add(store: Store, delivery: NewDelivery, received_at: float | None = None) -> Addition:
    """Store it unless its GUID is known; returns when it is on the disk. `received_at`, now by default, is its place in
    the order of its thread."""
    at = store.now() if received_at is None else received_at
    return await store.write(lambda db: _add(db, delivery, at))


async def get(store: Store, guid: str) -> Delivery | None:
    row = await store.read(lambda db: one(db, "SELECT * FROM deliveries WHERE guid = :guid", guid=guid))
    return Delivery.of(row) if row else None


async def known(store: Store, guids: Collection[str]) -> set[str]:
    """Which of these are in the ledger; for readers of GitHub's own delivery log, who have no body to compare."""
    sql = "SELECT guid FROM deliveries WHERE guid = :guid"

    def work(db: Database) -> set[str]:
        return {guid for guid in guids if one(db, sql, guid=guid)}

    return await store.read(work)


async def latest_at(store: Store) -> float:
    """When something was last received that was, or may be, acted upon; 0 when that never was."""
    sql = "SELECT MAX(received_at) AS at FROM deliveries WHERE state IN ('received', 'acted')"
    row = await store.read(lambda db: one(db, sql))
    return float(row["at"] or 0.0) if row else 0.0


async def unheeded(
    store: Store, repo_id: int, number: int, *, ours: str, plain: str, limit: int = 10
) -> list[Delivery]:
    """The newest first of an issue or pull request that nothing came of: what `why` explains. Left out are those that
    our own bot has caused, of which a long turn brings hundreds, and those whose reason is `plain`: talk of others."""
    sql = """
    SELECT * FROM deliveries WHERE repo_id = :repo_id AND number = :number
      AND state IN ('ignored', 'refused', 'failed') AND COALESCE(sender, '') <> :ours AND COALESCE(reason, '') <> :plain
    ORDER BY received_at DESC, guid LIMIT :limit
    """
    about = {"repo_id": repo_id, "number": number, "ours": ours, "plain": plain, "limit": limit}
    return [Delivery.of(row) for row in await store.read(lambda db: many(db, sql, **about))]


async def settle(
    store: Store, guid: DeliveryId, state: DeliveryState, reason: str | None = None, session_id: SessionId | None = None
) -> bool:
    """Say what became of it and drop its body, unless it failed and may be tried again; False when that had been
    said before."""
    return await store.write(lambda db: settled(db, guid, state, reason, session_id))


async def listing(store: Store, limit: int = 100) -> list[Delivery]:
    """Newest first, without their bodies."""
    sql = "SELECT * FROM deliveries ORDER BY received_at DESC, guid LIMIT :limit"
    rows = await store.read(lambda db: many(db, sql, limit=limit))
    return [Delivery.of({**row, "body": None}) for row in rows]


async def reopen(store: Store, guid: str) -> bool:
    """To be acted upon once more; False where its body is not kept."""
    sql = """
    UPDATE deliveries SET state = 'received', reason = NULL, attempts = 0
    WHERE guid = :guid AND state = 'failed' AND body IS NOT NULL
    """
    return await store.write(lambda db: run(db, sql, guid=guid)) == 1


async def bump_attempt(store: Store, guid: DeliveryId) -> int:
    """Count a try at acting upon it; how many there were with this one, 0 when it is settled."""
    sql = "UPDATE deliveries SET attempts = attempts + 1 WHERE guid = :guid AND state = 'received' RETURNING attempts"
    row = await store.write(lambda db: one(db, sql, guid=guid))
    return int(row["attempts"]) if row else 0


def settled(
    db: Database, guid: DeliveryId, state: DeliveryState, reason: str | None, session_id: SessionId | None
) -> bool:
    """`settle` as a part of a larger transaction."""
    sql = """
    UPDATE deliveries SET state = :state, reason = :reason, session_id = :session_id,
           body = CASE WHEN :state = 'failed' THEN body ELSE NULL END
    WHERE guid = :guid AND state = 'received'
    """
    return run(db, sql, guid=guid, state=state, reason=reason, session_id=session_id) == 1


def _add(db: Database, delivery: NewDelivery, received_at: float) -> Addition:
    values = {name: getattr(delivery, name) for name in NewDelivery.__dataclass_fields__}
    if run(db, _INSERT, received_at=received_at, **values):
        return Addition.ADDED
    row = one(db, "SELECT body_sha256 FROM deliveries WHERE guid = :guid", guid=delivery.guid)
    assert row is not None
    same = delivery.body_sha256 in (row["body_sha256"], UNSEEN) or row["body_sha256"] == UNSEEN
    return Addition.DUPLICATE if same else Addition.CONFLICT
