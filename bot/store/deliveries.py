"""The ledger of webhooks, what waits in it by thread, and how far GitHub's own log of deliveries was read.

Each GUID is there once, with its body until it is settled and why it was not acted upon. What waits is found without
reading a body."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from bot.models import DeliveryId, SessionId
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, Row, many, one, run


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
class StoredDelivery(Record):
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
    return hashlib.sha256(body).hexdigest()


async def add(store: Store, delivery: NewDelivery, received_at: float | None = None) -> Addition:
    """Store it unless its GUID is known; returns when it is on the disk. `received_at`, now by default, is its place in
    the order of its thread."""
    at = store.now() if received_at is None else received_at
    return await store.write(lambda db: _add(db, delivery, at))


async def get(store: Store, guid: str) -> StoredDelivery | None:
    row = await store.read(lambda db: one(db, "SELECT * FROM deliveries WHERE guid = :guid", guid=guid))
    return StoredDelivery.of(row) if row else None


async def known(store: Store, guids: Collection[str]) -> set[str]:
    """GUIDs of these that are in the ledger."""
    sql = "SELECT guid FROM deliveries WHERE guid = :guid"

    def work(db: Database) -> set[str]:
        return {guid for guid in guids if one(db, sql, guid=guid)}

    return await store.read(work)


async def latest_at(store: Store) -> float:
    """The time of the last delivery that was, or may be, acted upon; 0 if there is none."""
    sql = "SELECT MAX(received_at) AS at FROM deliveries WHERE state IN ('received', 'acted')"
    row = await store.read(lambda db: one(db, sql))
    return float(row["at"] or 0.0) if row else 0.0


async def unheeded(
    store: Store, repo_id: int, number: int, *, ours: str, plain: str, limit: int = 10
) -> list[StoredDelivery]:
    """The newest first of an issue or pull request that nothing came of: what `why` explains. Left out are those that
    our own bot has caused, of which a long turn brings hundreds, and those whose reason is `plain`: talk of others."""
    sql = """
    SELECT * FROM deliveries WHERE repo_id = :repo_id AND number = :number
      AND state IN ('ignored', 'refused', 'failed') AND COALESCE(sender, '') <> :ours AND COALESCE(reason, '') <> :plain
    ORDER BY received_at DESC, guid LIMIT :limit
    """
    about = {"repo_id": repo_id, "number": number, "ours": ours, "plain": plain, "limit": limit}
    return [StoredDelivery.of(row) for row in await store.read(lambda db: many(db, sql, **about))]


async def settle(
    store: Store, guid: DeliveryId, state: DeliveryState, reason: str | None = None, session_id: SessionId | None = None
) -> bool:
    """Say what became of it and drop its body, unless it failed and may be tried again; False when that had been
    said before."""
    return await store.write(lambda db: settle_in(db, guid, state, reason, session_id))


async def listing(store: Store, limit: int = 100) -> list[StoredDelivery]:
    """Newest first, without their bodies."""
    sql = "SELECT * FROM deliveries ORDER BY received_at DESC, guid LIMIT :limit"
    rows = await store.read(lambda db: many(db, sql, limit=limit))
    return [StoredDelivery.of({**row, "body": None}) for row in rows]


async def reopen(store: Store, guid: str) -> bool:
    """Let it be acted upon once more; False if its body is not kept."""
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


def settle_in(
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


@dataclass(frozen=True)
class DeliveryLogMark(Record):
    """Times are GitHub's. What is not newer than the floor was delivered before we ever looked."""

    app_id: int
    floor_at: float
    floor_id: int
    read_at: float

    def is_history(self, delivered_at: float, delivery_id: int) -> bool:
        return (delivered_at, delivery_id) <= (self.floor_at, self.floor_id)


async def log_mark(store: Store, app_id: int) -> DeliveryLogMark | None:
    sql = "SELECT * FROM delivery_marks WHERE app_id = :app_id"
    row = await store.read(lambda db: one(db, sql, app_id=app_id))
    return DeliveryLogMark.of(row) if row else None


async def begin_log(store: Store, app_id: int, floor_at: float, floor_id: int) -> None:
    """Set the floor at the first look ever; a second one changes nothing."""
    sql = """
    INSERT INTO delivery_marks (app_id, floor_at, floor_id, read_at) VALUES (:app_id, :at, :floor_id, :at)
    ON CONFLICT (app_id) DO NOTHING
    """
    await store.write(lambda db: run(db, sql, app_id=app_id, at=floor_at, floor_id=floor_id))


async def move_log_mark(store: Store, app_id: int, read_at: float) -> None:
    """Forward only."""
    sql = "UPDATE delivery_marks SET read_at = :at WHERE app_id = :app_id AND read_at < :at"
    await store.write(lambda db: run(db, sql, app_id=app_id, at=read_at))


ThreadId = tuple[int | None, int | None, DeliveryId | None]
"""Repository and number; what belongs to no thread stands alone, by its GUID."""


@dataclass(frozen=True)
class WaitingThread:
    """One whose deliveries wait, with the account and the repository that they are counted towards."""

    installation_id: int | None
    repo_id: int | None
    number: int | None
    guid: DeliveryId | None
    since: float

    @property
    def id(self) -> ThreadId:
        return (self.repo_id, self.number, self.guid)


_THREADS = """
WITH threads AS (
    SELECT MAX(installation_id) AS installation_id, repo_id, number, CASE WHEN number IS NULL THEN guid END AS guid,
           MIN(received_at) AS since
    FROM deliveries INDEXED BY deliveries_waiting WHERE state = 'received'
    GROUP BY repo_id, number, CASE WHEN number IS NULL THEN guid END
), placed AS (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY installation_id, repo_id ORDER BY since) AS place FROM threads
)
SELECT installation_id, repo_id, number, guid, since FROM placed
ORDER BY ROW_NUMBER() OVER (PARTITION BY installation_id ORDER BY place, since), since LIMIT :most
"""

_FIRST = """
SELECT * FROM deliveries INDEXED BY deliveries_waiting
WHERE state = 'received' AND repo_id IS :repo_id AND number IS :number ORDER BY received_at, guid LIMIT 1
"""

_ALONE = "SELECT * FROM deliveries WHERE guid = :guid AND state = 'received'"


async def waiting_threads(store: Store, most: int) -> list[WaitingThread]:
    """Each account in turn, and of each account each repository: first the oldest thread of every one of them."""

    def work(db: Database) -> list[WaitingThread]:
        return [WaitingThread(**row) for row in many(db, _THREADS, most=most)]

    return await store.read(work)


async def first_of(store: Store, thread: ThreadId) -> StoredDelivery | None:
    """The oldest delivery of a thread that nobody has settled, with its body."""
    repo_id, number, guid = thread

    def work(db: Database) -> Row | None:
        return one(db, _FIRST, repo_id=repo_id, number=number) if guid is None else one(db, _ALONE, guid=guid)

    row = await store.read(work)
    return StoredDelivery.of(row) if row else None
