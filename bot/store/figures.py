"""Figures for an operator's dashboards: sums over the store's rows, read at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from bot.store.base import Store
from bot.store.bulletins import BulletinState
from bot.store.rows import Database, Row, many


@dataclass(frozen=True)
class Figures:
    """Numbers by labels; each label has a closed set of values."""

    turns: Mapping[str, int]
    outcomes: Mapping[str, int]
    oldest_waiting_at: float | None
    deliveries: Mapping[str, int]
    bulletins: Mapping[str, int]
    installations: Mapping[str, int]
    model_requests: Mapping[str, int]
    usd: float
    tokens: Mapping[str, int]
    reserved_usd: float
    edits: int
    comments_due: int
    allowance_least: float | None
    allowances_paused: int


@dataclass(frozen=True)
class TurnTimes:
    waited_seconds: float
    step_seconds: Mapping[str, float]
    finished_at: float


_MONEY = """
SELECT COALESCE(SUM(cost_usd), 0.0) AS usd,
       COALESCE(SUM(CASE WHEN state = 'reserved' THEN reserved_usd ELSE 0.0 END), 0.0) AS reserved,
       COALESCE(SUM(input_tokens), 0) AS input, COALESCE(SUM(output_tokens), 0) AS output,
       COALESCE(SUM(cache_read_tokens), 0) AS cache_read, COALESCE(SUM(cache_write_tokens), 0) AS cache_write
FROM spend
"""
_REQUESTS = """
SELECT CASE WHEN state = 'abandoned' THEN 'abandoned' WHEN status IS NULL THEN 'open'
            WHEN status < 300 THEN '2xx' WHEN status = 429 THEN '429' WHEN status < 500 THEN '4xx' ELSE '5xx' END
       AS label, COUNT(*) AS n FROM spend GROUP BY 1
"""
_EDITS = """
SELECT MIN(tokens) AS least, SUM(CASE WHEN paused_until > :now THEN 1 ELSE 0 END) AS paused FROM writer_buckets
"""
_ENDED = """
SELECT created_at, started_at, finished_at, step_times FROM turns
WHERE state = 'done' AND replica IS :replica AND finished_at > :after ORDER BY finished_at LIMIT 1000
"""


async def ended_since(store: Store, after: float) -> list[TurnTimes]:
    """Return the times of the turns that this process ended after this moment, oldest first, at most 1000."""
    return [_ended(row) for row in await store.many(_ENDED, after=after, replica=store.replica)]


async def read(store: Store) -> Figures:
    now = store.now()
    return await store.read(lambda db: _figures(db, now))


def _figures(db: Database, now: float) -> Figures:
    [money] = many(db, _MONEY)
    [queue] = many(db, "SELECT MIN(created_at) AS at FROM turns WHERE state = 'queued'")
    [comments] = many(db, "SELECT COALESCE(SUM(edits), 0) AS edits, COALESCE(SUM(1 - final), 0) AS due FROM comments")
    [allowance] = many(db, _EDITS, now=now)
    return Figures(
        turns=_by(db, "SELECT state AS label, COUNT(*) AS n FROM turns GROUP BY state"),
        outcomes=_by(db, "SELECT outcome AS label, COUNT(*) AS n FROM turns WHERE state = 'done' GROUP BY outcome"),
        oldest_waiting_at=queue["at"],
        deliveries=_by(db, "SELECT state AS label, COUNT(*) AS n FROM deliveries GROUP BY state"),
        bulletins={state.value: 0 for state in BulletinState}
        | _by(db, "SELECT state AS label, COUNT(*) AS n FROM bulletins GROUP BY state"),
        installations=_by(db, "SELECT state AS label, COUNT(*) AS n FROM installations GROUP BY state"),
        model_requests=_by(db, _REQUESTS),
        usd=money["usd"],
        tokens={kind: money[kind] for kind in ("input", "output", "cache_read", "cache_write")},
        reserved_usd=money["reserved"],
        edits=comments["edits"],
        comments_due=comments["due"],
        allowance_least=allowance["least"],
        allowances_paused=allowance["paused"] or 0,
    )


def _by(db: Database, sql: str) -> dict[str, int]:
    return {str(row["label"]): int(row["n"]) for row in many(db, sql) if row["label"] is not None}


def _ended(row: Row) -> TurnTimes:
    begun = sorted(msgspec.json.decode(row["step_times"], type=dict[str, float]).items(), key=lambda item: item[1])
    # Each step lasts until the next one begins.
    ends = [at for _, at in begun[1:]] + [row["finished_at"]]
    steps = {step: max(0.0, end - at) for (step, at), end in zip(begun, ends, strict=True)}
    waited = max(0.0, (row["started_at"] or row["finished_at"]) - row["created_at"])
    return TurnTimes(waited, steps, row["finished_at"])
