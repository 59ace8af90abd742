"""How long machines that are paid for have run for a turn, and what that cost: one row for each run of a machine.

A run that nobody saw end counts until it must have ended by itself: an upper bound, in the store from the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.models import TurnKey
from bot.store.base import Database, Store
from bot.store.rows import Row, many, one, run

SAME_SECONDS = 0.01
"""A provider may keep a time less exactly once a machine is paused; no machine pauses and begins anew in this."""
_END = "CASE WHEN ended_at IS NOT NULL THEN ended_at WHEN ends_by < :now THEN ends_by ELSE :now END"
SECONDS = f"(CASE WHEN {_END} > began_at THEN {_END} - began_at ELSE 0 END)"
"""Of a row, at the time `:now`."""
USD = f"({SECONDS} * (cpus * cpu_usd + memory_gib * gib_usd))"
_SUMS = f"""
COALESCE(SUM({SECONDS}), 0) AS seconds, COALESCE(SUM({SECONDS} * cpus), 0) AS vcpu_seconds,
COALESCE(SUM({SECONDS} * memory_gib), 0) AS gib_seconds, COALESCE(SUM({USD}), 0) AS usd
"""
_SAME_RUN = "environment_id = :id AND run_at BETWEEN :least AND :most"
_DAY = "CAST(began_at AS BIGINT) / 86400"
_GROUPS: Mapping[str, tuple[str, str]] = {
    "day": (f"{_DAY} AS day, COUNT(DISTINCT session_id) AS sessions", _DAY),
    "session": (
        "session_id AS session, (SELECT repos.owner || '/' || repos.name || '#' || threads.number FROM sessions "
        "JOIN threads ON threads.id = sessions.thread_id JOIN repos ON repos.id = threads.repo_id "
        "WHERE sessions.id = machine_runs.session_id) AS thread, COUNT(DISTINCT turn) AS turns",
        "session_id",
    ),
}


@dataclass(frozen=True)
class Run:
    """A machine as its provider describes it while it runs."""

    environment_id: str
    run_at: float
    ends_by: float
    cpus: float
    memory_gib: float
    cpu_usd: float
    gib_usd: float


@dataclass(frozen=True)
class MachineCost:
    seconds: float = 0.0
    vcpu_seconds: float = 0.0
    gib_seconds: float = 0.0
    usd: float = 0.0


async def seen(store: Store, key: TurnKey, found: Run) -> None:
    """It runs for this turn. What the same environment ran before (for whichever turn) is over."""
    await store.write(lambda db: _seen(db, key, found, store.now()))


async def missed(store: Store, key: TurnKey, found: Run) -> None:
    """It ran (or runs still) in an environment of this turn, and may have been seen by nobody: then it is noted now."""

    def work(db: Database) -> None:
        sql = f"SELECT 1 AS known FROM machine_runs WHERE {_SAME_RUN} LIMIT 1"  # noqa: S608 - a constant
        if one(db, sql, **_same_run(found.environment_id, found.run_at)) is None:
            _put(db, key, found, found.run_at, store.now())

    await store.write(work)


async def end(store: Store, key: TurnKey) -> None:
    """Nothing runs for this turn any more, but what is still to be ended or laid to rest: that is counted until it is.
    Safe to repeat."""
    sql = f"""
    UPDATE machine_runs SET ended_at = {_END} WHERE session_id = :session AND turn = :n AND ended_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM environments WHERE environments.id = machine_runs.environment_id)
    """  # noqa: S608
    now = store.now()
    await store.write(lambda db: run(db, sql, session=key.session, n=key.n, now=now))


async def end_of(store: Store, environment_id: str) -> None:
    """It does not run any more, for whichever turn."""
    sql = f"UPDATE machine_runs SET ended_at = {_END} WHERE environment_id = :id AND ended_at IS NULL"  # noqa: S608
    now = store.now()
    await store.write(lambda db: run(db, sql, id=environment_id, now=now))


async def end_of_run(store: Store, environment_id: str, run_at: float) -> None:
    """Of several machines for one environment, this one does not run any more."""
    sql = f"UPDATE machine_runs SET ended_at = {_END} WHERE {_SAME_RUN} AND ended_at IS NULL"  # noqa: S608
    where, now = _same_run(environment_id, run_at), store.now()
    await store.write(lambda db: run(db, sql, now=now, **where))


async def environment_cost(store: Store, environment_id: str) -> MachineCost:
    """In all turns that it has served."""
    return await _cost(store, "environment_id = :id", id=environment_id)


async def turn_cost(store: Store, key: TurnKey) -> MachineCost:
    return await _cost(store, "session_id = :session AND turn = :n", session=key.session, n=key.n)


async def thread_cost(store: Store, thread_id: str) -> MachineCost:
    return await _cost(store, "session_id IN (SELECT id FROM sessions WHERE thread_id = :thread)", thread=thread_id)


async def summed(store: Store, by: str, since: float) -> list[dict[str, Any]]:
    """One row a session (the dearest first) or a day (in their order); a run counts for the day on which it began."""
    columns, group = _GROUPS[by]
    order = "MIN(began_at)" if by == "day" else "usd DESC, MIN(began_at)"
    sql = f"SELECT {columns}, {_SUMS} FROM machine_runs WHERE began_at >= :since GROUP BY {group} ORDER BY {order}"  # noqa: S608
    now = store.now()
    return [dict(row) for row in await store.read(lambda db: many(db, sql, since=since, now=now))]


def _same_run(environment_id: str, run_at: float) -> dict[str, Any]:
    return {"id": environment_id, "least": run_at - SAME_SECONDS, "most": run_at + SAME_SECONDS}


def _seen(db: Database, key: TurnKey, found: Run, now: float) -> None:
    _end_others(db, key, found, now)
    _put(db, key, found, _counts_from(db, key, found), now)


def _put(db: Database, key: TurnKey, found: Run, began_at: float, now: float) -> None:
    sql = """
    INSERT INTO machine_runs (session_id, turn, environment_id, run_at, began_at, seen_at, ends_by, cpus, memory_gib,
                              cpu_usd, gib_usd)
    VALUES (:session, :n, :environment, :run_at, :began_at, :now, :ends_by, :cpus, :gib, :cpu_usd, :gib_usd)
    ON CONFLICT (session_id, turn, environment_id, run_at)
    DO UPDATE SET seen_at = excluded.seen_at, ends_by = excluded.ends_by
    """
    prices = {"cpus": found.cpus, "gib": found.memory_gib, "cpu_usd": found.cpu_usd, "gib_usd": found.gib_usd}
    when = {"run_at": found.run_at, "began_at": began_at, "now": now, "ends_by": found.ends_by}
    run(db, sql, session=key.session, n=key.n, environment=found.environment_id, **when, **prices)


def _end_others(db: Database, key: TurnKey, found: Run, now: float) -> None:
    """Another run tells when an earlier one was over at the latest; that one which began later is not there any more,
    since this one is; in the same run, this turn follows on another."""
    sql = """
    UPDATE machine_runs SET ended_at = CASE WHEN ends_by < :at THEN ends_by ELSE :at END
    WHERE environment_id = :environment AND ended_at IS NULL
    """
    earlier_run, twin = f"{sql} AND run_at < :run_at", f"{sql} AND run_at > :run_at"
    other_turn = f"{sql} AND run_at = :run_at AND (session_id <> :session OR turn <> :n)"
    where = {"environment": found.environment_id, "run_at": found.run_at}
    run(db, earlier_run, at=found.run_at, **where)
    run(db, twin, at=now, **where)
    run(db, other_turn, session=key.session, n=key.n, at=now, **where)


def _counts_from(db: Database, key: TurnKey, found: Run) -> float:
    """The run's beginning, or the end of another turn's part of the same run."""
    sql = """
    SELECT MAX(ended_at) AS ended_at FROM machine_runs
    WHERE environment_id = :environment AND run_at = :run_at AND (session_id <> :session OR turn <> :n)
    """
    where = {"session": key.session, "n": key.n, "environment": found.environment_id, "run_at": found.run_at}
    row: Row | None = one(db, sql, **where)
    return max(found.run_at, (row and row["ended_at"]) or 0.0)


async def _cost(store: Store, where: str, **values: Any) -> MachineCost:
    sql, now = f"SELECT {_SUMS} FROM machine_runs WHERE {where}", store.now()  # noqa: S608 - constants above
    row = await store.read(lambda db: one(db, sql, now=now, **values))
    assert row is not None
    return MachineCost(**row)
