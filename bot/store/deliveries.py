"""The ledger of deliveries, the threads that wait in it, and how far we have read GitHub's own log of them.

Each GUID has one row. It keeps the body until the delivery is settled; finding what waits reads no body."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from bot.models import DeliveryId, SessionId
from bot.store import audit
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, many, one, run, statement
from bot.store.sought import EVERYTHING, Sought


class DeliveryState(StrEnum):
    RECEIVED = "received"
    ACTED = "acted"
    IGNORED = "ignored"
    REFUSED = "refused"
    FAILED = "failed"


class Addition(StrEnum):
    ADDED = "added"
    DUPLICATE = "duplicate"
    """The same GUID with the same body: GitHub sent it again."""
    CONFLICT = "conflict"
    """The same GUID with another body: the first one counts."""


@dataclass(frozen=True)
class NewDelivery:
    """A webhook as it arrived; without a body it needs no action."""

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
"""Instead of a digest: the delivery came from GitHub's log, which has the payload but not the bytes that were sent."""


def digest(body: bytes | bytearray) -> str:
    return hashlib.sha256(body).hexdigest()


async def add(store: Store, delivery: NewDelivery, received_at: float | None = None) -> Addition:
    """Store it unless its GUID is known. Deliveries of a thread are handled in the order of `received_at`."""
    at = store.now() if received_at is None else received_at

    def work(db: Database) -> Addition:
        if run(db, _INSERT, received_at=at, **vars(delivery)):
            return Addition.ADDED
        row = one(db, "SELECT body_sha256 FROM deliveries WHERE guid = :guid", guid=delivery.guid)
        assert row is not None
        same = delivery.body_sha256 in (row["body_sha256"], UNSEEN) or row["body_sha256"] == UNSEEN
        return Addition.DUPLICATE if same else Addition.CONFLICT

    return await store.write(work)


async def get(store: Store, guid: str) -> StoredDelivery | None:
    return await StoredDelivery.one(store, "SELECT * FROM deliveries WHERE guid = :guid", guid=guid)


async def known(store: Store, guids: Collection[str]) -> set[str]:
    sql = "SELECT guid FROM deliveries WHERE guid = :guid"
    return await store.read(lambda db: {guid for guid in guids if one(db, sql, guid=guid)})


async def latest_at(store: Store) -> float:
    """Return the time of the last delivery that was, or may be, acted upon; 0 if there is none."""
    sql = "SELECT MAX(received_at) AS at FROM deliveries WHERE state IN ('received', 'acted')"
    row = await store.one(sql)
    return float(row["at"] or 0.0) if row else 0.0


async def unheeded(
    store: Store, repo_id: int, number: int, *, ours: str, plain: str, limit: int = 10
) -> list[StoredDelivery]:
    """Return a thread's deliveries without effect, newest first, for `why`. Our own bot's are left out, because a long
    turn causes hundreds, and so are those with the reason `plain`: other people's talk."""
    sql = """
    SELECT * FROM deliveries WHERE repo_id = :repo_id AND number = :number
      AND state IN ('ignored', 'refused', 'failed') AND COALESCE(sender, '') <> :ours AND COALESCE(reason, '') <> :plain
    ORDER BY received_at DESC, guid LIMIT :limit
    """
    about = {"repo_id": repo_id, "number": number, "ours": ours, "plain": plain, "limit": limit}
    return await StoredDelivery.many(store, sql, **about)


async def settle(
    store: Store, guid: DeliveryId, state: DeliveryState, reason: str | None = None, session_id: SessionId | None = None
) -> bool:
    """Store its outcome, once. Its body goes, unless it failed and may be tried again."""
    return await store.write(lambda db: settle_in(db, guid, state, reason, session_id))


@dataclass(frozen=True)
class LedgerLine(Record):
    """A delivery without its body, and the name of its repository."""

    guid: DeliveryId
    event: str
    action: str | None
    received_at: float
    state: DeliveryState
    reason: str | None
    installation_id: int | None
    repo_id: int | None
    number: int | None
    sender: str | None
    attempts: int
    session_id: SessionId | None
    repo: str | None
    body_sha256: str
    can_replay: bool


_LINES = """
SELECT guid, event, action, received_at, state, reason, deliveries.installation_id, repo_id, number, sender, attempts,
       session_id, body_sha256, repos.owner || '/' || repos.name AS repo,
       CASE WHEN state = 'failed' AND body IS NOT NULL THEN 1 ELSE 0 END AS can_replay
FROM deliveries LEFT JOIN repos ON repos.id = repo_id
WHERE {sought} ORDER BY received_at DESC, guid LIMIT :limit
"""
_SOUGHT = {
    "repo": "repos.owner || '/' || repos.name",
    "state": "state",
    "by": "sender",
    "since": "received_at",
    "without": "reason",
}


async def listing(store: Store, sought: Sought = EVERYTHING) -> list[LedgerLine]:
    return await LedgerLine.many(store, statement(_LINES, sought=sought.where(_SOUGHT)), **sought.values)


async def line(store: Store, guid: str) -> LedgerLine | None:
    return await LedgerLine.one(store, statement(_LINES, sought="guid = :guid"), guid=guid, limit=1)


async def reopen(store: Store, guid: str, *, by: str) -> bool:
    """Let it be acted upon once more, and note who wanted that; False if its body is gone."""
    sql = """
    UPDATE deliveries SET state = 'received', reason = NULL, attempts = 0
    WHERE guid = :guid AND state = 'failed' AND body IS NOT NULL
    """
    at = store.now()

    def work(db: Database) -> bool:
        if run(db, sql, guid=guid) != 1:
            return False
        audit.put(db, at, by, "delivery replayed", guid)
        return True

    return await store.write(work)


async def count_try(store: Store, guid: DeliveryId) -> int:
    """Count a try, and return how many there were with this one; 0 if it is settled."""
    sql = "UPDATE deliveries SET attempts = attempts + 1 WHERE guid = :guid AND state = 'received' RETURNING attempts"
    row = await store.write(lambda db: one(db, sql, guid=guid))
    return int(row["attempts"]) if row else 0


def settle_in(
    db: Database, guid: DeliveryId, state: DeliveryState, reason: str | None, session_id: SessionId | None
) -> bool:
    """Do what `settle` does, within a larger transaction."""
    sql = """
    UPDATE deliveries SET state = :state, reason = :reason, session_id = :session_id,
           body = CASE WHEN :state = 'failed' THEN body ELSE NULL END
    WHERE guid = :guid AND state = 'received'
    """
    return run(db, sql, guid=guid, state=state, reason=reason, session_id=session_id) == 1


@dataclass(frozen=True)
class DeliveryLogMark(Record):
    """Our place in GitHub's log, in GitHub's time. The floor is where the log ended when we first looked."""

    app_id: int
    floor_at: float
    floor_id: int
    read_at: float

    def is_history(self, delivered_at: float, delivery_id: int) -> bool:
        return (delivered_at, delivery_id) <= (self.floor_at, self.floor_id)


async def log_mark(store: Store, app_id: int) -> DeliveryLogMark | None:
    sql = "SELECT * FROM delivery_marks WHERE app_id = :app_id"
    return await DeliveryLogMark.one(store, sql, app_id=app_id)


async def begin_log(store: Store, app_id: int, floor_at: float, floor_id: int) -> None:
    """Set the floor at the first look ever; later calls change nothing."""
    sql = """
    INSERT INTO delivery_marks (app_id, floor_at, floor_id, read_at) VALUES (:app_id, :at, :floor_id, :at)
    ON CONFLICT (app_id) DO NOTHING
    """
    await store.run(sql, app_id=app_id, at=floor_at, floor_id=floor_id)


async def move_log_mark(store: Store, app_id: int, read_at: float) -> None:
    """Move it, forward only."""
    sql = "UPDATE delivery_marks SET read_at = :at WHERE app_id = :app_id AND read_at < :at"
    await store.run(sql, app_id=app_id, at=read_at)


ThreadId = tuple[int | None, int | None, DeliveryId | None]
"""Repository and number; a delivery of no thread is alone, by its GUID."""


@dataclass(frozen=True)
class WaitingThread:
    """A thread with waiting deliveries, and the account and repository whose share they use."""

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
    """Return them in fair order: accounts take turns, and so do the repositories of each; their oldest thread first."""

    def work(db: Database) -> list[WaitingThread]:
        return [WaitingThread(**row) for row in many(db, _THREADS, most=most)]

    return await store.read(work)


async def first_of(store: Store, thread: ThreadId) -> StoredDelivery | None:
    """Return the thread's oldest delivery that is not settled, with its body."""
    repo_id, number, guid = thread
    if guid is not None:
        return await StoredDelivery.one(store, _ALONE, guid=guid)
    return await StoredDelivery.one(store, _FIRST, repo_id=repo_id, number=number)
