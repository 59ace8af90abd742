"""Each line of an account's spending, for an export: a turn's requests to one model on one day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.models import InstallationId, SessionId
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import statement
from bot.store.spend import ALL_SPENT, DAY, SUMS


@dataclass(frozen=True)
class SpendLine(Record):
    day: int
    """Counted since 1970."""
    account: str | None
    repo: str | None
    number: int | None
    person: str | None
    session_id: SessionId
    turn: int
    kind: str | None
    model: str
    requests: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float
    sandbox_usd: float
    unconfirmed_usd: float


_LINES = statement(
    """
SELECT spent.*, installations.account, repos.owner || '/' || repos.name AS repo, threads.number,
       turns.requester AS person, turns.kind
FROM (
    SELECT {day} AS day, spend.installation_id, spend.repo_id, spend.session_id, spend.turn, spend.model, {sums}
    FROM {spent} {whose}
    GROUP BY {day}, spend.installation_id, spend.repo_id, spend.session_id, spend.turn, spend.model
) AS spent
LEFT JOIN installations ON installations.id = spent.installation_id
LEFT JOIN repos ON repos.id = spent.repo_id
LEFT JOIN turns ON turns.session_id = spent.session_id AND turns.n = spent.turn
LEFT JOIN sessions ON sessions.id = spent.session_id LEFT JOIN threads ON threads.id = sessions.thread_id
ORDER BY spent.day, spent.session_id, spent.turn, spent.model LIMIT :limit
""",
    day=DAY,
    sums=SUMS,
    spent=ALL_SPENT,
    whose="{whose}",
)


async def between(
    store: Store, since: float, until: float, installation: InstallationId | None, limit: int
) -> list[SpendLine]:
    values: dict[str, Any] = {"since": since, "until": until, "now": store.now(), "limit": limit}
    whose = ""
    if installation is not None:
        whose, values["installation"] = "WHERE spend.installation_id = :installation", installation
    return await SpendLine.many(store, statement(_LINES, whose=whose), **values)
