"""What was spent, at the model and for machines, summed for people: by day, repository, person or session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.models import InstallationId
from bot.store import machines
from bot.store.base import Store
from bot.store.rows import many

# Whole seconds first: SQLite and PostgreSQL round differently.
_DAY = "CAST(spend.at AS BIGINT) / 86400"
_GROUPS: Mapping[str, tuple[str, str]] = {
    "day": (f"{_DAY} AS day", _DAY),
    "repo": ("spend.repo_id, (SELECT owner || '/' || name FROM repos WHERE id = spend.repo_id) AS repo", "repo_id"),
    "user": (
        "spend.user_id, (SELECT requester FROM turns WHERE requester_id = spend.user_id "
        'ORDER BY created_at DESC LIMIT 1) AS "user"',
        "user_id",
    ),
    "session": (
        "spend.session_id AS session, (SELECT repos.owner || '/' || repos.name || '#' || threads.number FROM sessions "
        "JOIN threads ON threads.id = sessions.thread_id JOIN repos ON repos.id = threads.repo_id "
        "WHERE sessions.id = spend.session_id) AS thread, COUNT(DISTINCT spend.turn) AS turns",
        "session_id",
    ),
}
_SPENT = f"""(
SELECT session_id, turn, repo_id, user_id, installation_id, at, cost_usd, 1 AS requests, 0 AS sandbox_usd,
    CASE WHEN state = 'reserved' THEN reserved_usd ELSE 0 END AS under_way_usd,
    unconfirmed_usd, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens
FROM spend WHERE at >= :since
UNION ALL
SELECT machine_runs.session_id, machine_runs.turn, COALESCE(threads.repo_id, 0), COALESCE(turns.requester_id, 0),
    COALESCE(threads.installation_id, 0), began_at, 0, 0, {machines.USD}, 0, 0, 0, 0, 0, 0
FROM machine_runs
LEFT JOIN turns ON turns.session_id = machine_runs.session_id AND turns.n = machine_runs.turn
LEFT JOIN sessions ON sessions.id = machine_runs.session_id LEFT JOIN threads ON threads.id = sessions.thread_id
WHERE began_at >= :since
) AS spend"""  # noqa: S608 - constants
_SUMS = """
SUM(cost_usd) AS cost_usd, SUM(sandbox_usd) AS sandbox_usd, SUM(requests) AS requests,
SUM(under_way_usd) AS under_way_usd, SUM(unconfirmed_usd) AS unconfirmed_usd,
SUM(input_tokens) AS input_tokens, SUM(output_tokens) AS output_tokens,
SUM(cache_read_tokens) AS cache_read_tokens, SUM(cache_write_tokens) AS cache_write_tokens
"""


async def summed(
    store: Store, by: str, since: float, installation: InstallationId | None = None
) -> list[dict[str, Any]]:
    """One row a group, the dearest first; days in their order. Of one installation, or of all."""
    columns, group = _GROUPS[by]
    order = "MIN(spend.at)" if by == "day" else "SUM(cost_usd + sandbox_usd) DESC, MIN(spend.at)"
    whose = "" if installation is None else "WHERE spend.installation_id = :installation"
    sql = f"SELECT {columns}, {_SUMS} FROM {_SPENT} {whose} GROUP BY {group} ORDER BY {order}"  # noqa: S608 - constants
    values = {"since": since, "now": store.now()} | ({} if installation is None else {"installation": installation})
    return [dict(row) for row in await store.read(lambda db: many(db, sql, **values))]
