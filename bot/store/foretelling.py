"""Reads a repository's past to foretell its future: the events that came, and the cost of its turns."""

from __future__ import annotations

from dataclasses import dataclass

from bot.store.base import Store
from bot.store.records import Record


@dataclass(frozen=True)
class PastEvents(Record):
    """Events of one sort; those that bots or we ourselves caused are left out."""

    event: str
    action: str
    count: int
    threads: int


_EVENTS = """
SELECT deliveries.event, deliveries.action, COUNT(*) AS count, COUNT(DISTINCT deliveries.number) AS threads
FROM deliveries JOIN repos ON repos.id = deliveries.repo_id
WHERE LOWER(repos.owner || '/' || repos.name) = :repo AND deliveries.received_at >= :since
  AND deliveries.action IS NOT NULL AND COALESCE(deliveries.sender, '') NOT LIKE '%[bot]'
GROUP BY deliveries.event, deliveries.action ORDER BY deliveries.event, deliveries.action
"""
_OLDEST = """
SELECT MIN(deliveries.received_at) AS at FROM deliveries JOIN repos ON repos.id = deliveries.repo_id
WHERE LOWER(repos.owner || '/' || repos.name) = :repo
"""
_COSTS = """
SELECT turns.kind, SUM(spend.cost_usd + spend.unconfirmed_usd) AS usd
FROM turns JOIN repos ON repos.id = turns.in_repo
JOIN spend ON spend.session_id = turns.session_id AND spend.turn = turns.n
WHERE turns.state = 'done' AND (:repo = '' OR LOWER(repos.owner || '/' || repos.name) = :repo)
GROUP BY turns.session_id, turns.n, turns.kind
"""


async def events(store: Store, repo: str, since: float) -> list[PastEvents]:
    return await PastEvents.many(store, _EVENTS, repo=repo.lower(), since=since)


async def known_since(store: Store, repo: str) -> float | None:
    """Return when the oldest delivery came that the ledger still has; None: it has none."""
    row = await store.one(_OLDEST, repo=repo.lower())
    return row["at"] if row else None


async def costs(store: Store, repo: str = "") -> dict[str, list[float]]:
    """Return by kind what each ended turn has cost, in the repository or everywhere."""
    found: dict[str, list[float]] = {}
    for row in await store.many(_COSTS, repo=repo.lower()):
        found.setdefault(row["kind"], []).append(row["usd"])
    return found
