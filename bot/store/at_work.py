"""Reads what waits and what runs, for the operator: without the words of the threads."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models import InstallationId, SessionId, Step, TurnState
from bot.store.base import Store
from bot.store.records import Record


@dataclass(frozen=True)
class TurnAtWork(Record):
    session_id: SessionId
    n: int
    state: TurnState
    step: Step
    kind: str
    requester: str
    repo: str
    number: int
    created_at: float
    started_at: float | None
    replica: str | None
    cost_usd: float


_TURNS = """
SELECT turns.session_id, turns.n, turns.state, turns.step, turns.kind, turns.requester,
       repos.owner || '/' || repos.name AS repo, turns.number, turns.created_at, turns.started_at, turns.replica,
       COALESCE((SELECT SUM(cost_usd + unconfirmed_usd) FROM spend
                 WHERE spend.session_id = turns.session_id AND spend.turn = turns.n), 0.0) AS cost_usd
FROM turns JOIN sessions ON sessions.id = turns.session_id JOIN threads ON threads.id = sessions.thread_id
JOIN repos ON repos.id = threads.repo_id
WHERE turns.state IN ('queued', 'running') ORDER BY turns.state DESC, turns.created_at LIMIT :limit
"""


@dataclass(frozen=True)
class EditAllowance(Record):
    """The edits that an installation has left, as we count them."""

    account: str
    tokens: float
    pace: str
    paused_until: float
    refused_at: float


_ALLOWANCES = """
SELECT COALESCE(installations.account, 'installation ' || writer_buckets.installation_id) AS account,
       writer_buckets.tokens, writer_buckets.pace, writer_buckets.paused_until, writer_buckets.refused_at
FROM writer_buckets LEFT JOIN installations ON installations.id = writer_buckets.installation_id
ORDER BY writer_buckets.paused_until DESC, writer_buckets.tokens LIMIT :limit
"""


@dataclass(frozen=True)
class AccountToday(Record):
    """An account's money since the day began."""

    id: InstallationId
    account: str
    usd: float


_TODAY = """
SELECT installations.id, installations.account,
       COALESCE(SUM(spend_days.cost_usd + spend_days.unconfirmed_usd), 0.0) AS usd
FROM installations LEFT JOIN spend_days
     ON spend_days.payer = 'installation_id' AND spend_days.number = installations.id AND spend_days.day = :day
WHERE installations.state = 'active'
GROUP BY installations.id, installations.account ORDER BY 3 DESC, 2 LIMIT :limit
"""


async def turns(store: Store, limit: int) -> list[TurnAtWork]:
    """Return those that run, then those that wait, oldest first."""
    return await TurnAtWork.many(store, _TURNS, limit=limit)


async def allowances(store: Store, limit: int) -> list[EditAllowance]:
    return await EditAllowance.many(store, _ALLOWANCES, limit=limit)


async def today(store: Store, limit: int) -> list[AccountToday]:
    """Return the accounts with what each has spent today, most first."""
    return await AccountToday.many(store, _TODAY, day=int(store.now() // 86_400), limit=limit)
