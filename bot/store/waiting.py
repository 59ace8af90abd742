"""What waits in the ledger, by thread: whose turn it is is told without reading any body."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models import DeliveryId
from bot.store.base import Store
from bot.store.deliveries import StoredDelivery
from bot.store.rows import Database, Row, many, one

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
