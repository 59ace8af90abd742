"""Paid machines: how long they ran for a turn, what that cost, and samples of what they used.

Each run of a machine has a row. If nobody saw it end, it counts until its latest possible end, which is stored from the
start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.models import TurnKey
from bot.store.base import Database, Store
from bot.store.rows import Row, day_of, one, run, statement

SAME_SECONDS = 0.01
"""A provider may round a time once a machine is paused; no machine pauses and starts again within this."""
_END = "CASE WHEN ended_at IS NOT NULL THEN ended_at WHEN ends_by < :now THEN ends_by ELSE :now END"
SECONDS = f"(CASE WHEN {_END} > began_at THEN {_END} - began_at ELSE 0 END)"
"""A row's seconds at the time `:now`."""
USD = f"({SECONDS} * (cpus * cpu_usd + memory_gib * gib_usd))"
_SUMS = f"""
COALESCE(SUM({SECONDS}), 0) AS seconds, COALESCE(SUM({SECONDS} * cpus), 0) AS vcpu_seconds,
COALESCE(SUM({SECONDS} * memory_gib), 0) AS gib_seconds, COALESCE(SUM({USD}), 0) AS usd
"""
_SAME_RUN = "environment_id = :id AND run_at BETWEEN :least AND :most"
_DAY = day_of("began_at")
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
class MachineRun:
    """A running machine as its provider describes it."""

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


async def seen(store: Store, key: TurnKey, found: MachineRun) -> None:
    """Note that it runs for this turn, and end what the same environment ran before, for any turn."""

    def work(db: Database) -> None:
        now = store.now()
        _end_others(db, key, found, now)
        _put(db, key, found, _counts_from(db, key, found), now)

    await store.write(work)


async def missed(store: Store, key: TurnKey, found: MachineRun) -> None:
    """Note a run for this turn, unless it is known."""

    def work(db: Database) -> None:
        sql = statement("SELECT 1 AS known FROM machine_runs WHERE {same} LIMIT 1", same=_SAME_RUN)
        if one(db, sql, **_same_run(found.environment_id, found.run_at)) is None:
            _put(db, key, found, found.run_at, store.now())

    await store.write(work)


async def end(store: Store, key: TurnKey) -> None:
    """End this turn's runs whose environment is gone; the others count until it is ended or paused. Safe to repeat."""
    ended = """
    UPDATE machine_runs SET ended_at = {end} WHERE session_id = :session AND turn = :n AND ended_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM environments WHERE environments.id = machine_runs.environment_id)
    """
    now, sql = store.now(), statement(ended, end=_END)
    await store.run(sql, session=key.session, n=key.n, now=now)


async def end_of(store: Store, environment_id: str) -> None:
    """End what runs in an environment, for any turn."""
    ended = "UPDATE machine_runs SET ended_at = {end} WHERE environment_id = :id AND ended_at IS NULL"
    sql = statement(ended, end=_END)
    await store.run(sql, id=environment_id, now=store.now())


async def end_of_run(store: Store, environment_id: str, run_at: float) -> None:
    """End one of several machines of an environment."""
    ended = "UPDATE machine_runs SET ended_at = {end} WHERE {same} AND ended_at IS NULL"
    sql = statement(ended, end=_END, same=_SAME_RUN)
    where, now = _same_run(environment_id, run_at), store.now()
    await store.run(sql, now=now, **where)


async def environment_cost(store: Store, environment_id: str) -> MachineCost:
    return await _cost(store, "environment_id = :id", id=environment_id)


async def turn_cost(store: Store, key: TurnKey) -> MachineCost:
    return await _cost(store, "session_id = :session AND turn = :n", session=key.session, n=key.n)


async def thread_cost(store: Store, thread_id: str) -> MachineCost:
    return await _cost(store, "session_id IN (SELECT id FROM sessions WHERE thread_id = :thread)", thread=thread_id)


async def summed(store: Store, by: str, since: float) -> list[dict[str, Any]]:
    """Return sums by session (most expensive first) or by day in order; a run counts on the day it began."""
    columns, group = _GROUPS[by]
    order = "MIN(began_at)" if by == "day" else "usd DESC, MIN(began_at)"
    parts = {"columns": columns, "sums": _SUMS, "group": group, "order": order}
    select = "SELECT {columns}, {sums} FROM machine_runs WHERE began_at >= :since GROUP BY {group} ORDER BY {order}"
    sql = statement(select, **parts)
    return [dict(row) for row in await store.many(sql, since=since, now=store.now())]


def _same_run(environment_id: str, run_at: float) -> dict[str, Any]:
    return {"id": environment_id, "least": run_at - SAME_SECONDS, "most": run_at + SAME_SECONDS}


def _put(db: Database, key: TurnKey, found: MachineRun, began_at: float, now: float) -> None:
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


def _end_others(db: Database, key: TurnKey, found: MachineRun, now: float) -> None:
    """End rows that this run shows to be over: earlier runs ended before it began, a later one is gone since this one
    is there, and in the same run this turn follows another."""
    sql = """
    UPDATE machine_runs SET ended_at = CASE WHEN ends_by < :at THEN ends_by ELSE :at END
    WHERE environment_id = :environment AND ended_at IS NULL
    """
    other_turn = f"{sql} AND run_at = :run_at AND (session_id <> :session OR turn <> :n)"
    where = {"environment": found.environment_id, "run_at": found.run_at}
    run(db, f"{sql} AND run_at < :run_at", at=found.run_at, **where)
    run(db, f"{sql} AND run_at > :run_at", at=now, **where)
    run(db, other_turn, session=key.session, n=key.n, at=now, **where)


def _counts_from(db: Database, key: TurnKey, found: MachineRun) -> float:
    """Return the run's beginning, or the end of another turn's part of the same run."""
    sql = """
    SELECT MAX(ended_at) AS ended_at FROM machine_runs
    WHERE environment_id = :environment AND run_at = :run_at AND (session_id <> :session OR turn <> :n)
    """
    where = {"session": key.session, "n": key.n, "environment": found.environment_id, "run_at": found.run_at}
    row: Row | None = one(db, sql, **where)
    return max(found.run_at, (row and row["ended_at"]) or 0.0)


async def _cost(store: Store, where: str, **values: Any) -> MachineCost:
    sql = statement("SELECT {sums} FROM machine_runs WHERE {where}", sums=_SUMS, where=where)
    row = await store.one(sql, now=store.now(), **values)
    assert row is not None
    return MachineCost(**row)


_LATEST = """
SELECT at, cpu_percent, memory_bytes, disk_bytes,
    (SELECT MAX(memory_bytes) FROM samples WHERE session_id = :session AND turn = :n) AS peak_memory_bytes
FROM samples WHERE session_id = :session AND turn = :n ORDER BY at DESC LIMIT 1
"""
_ADD = """
INSERT INTO samples (session_id, turn, at, cpu_percent, memory_bytes, disk_bytes)
VALUES (:session, :n, :at, :cpu, :memory, :disk) ON CONFLICT (session_id, turn, at) DO NOTHING
"""


@dataclass(frozen=True)
class Sample:
    """The last sample of a turn, with the peak of memory over all."""

    at: float
    cpu_percent: float
    """100 is one busy CPU, 200 two."""
    memory_bytes: int
    disk_bytes: int
    peak_memory_bytes: int


async def latest_sample(store: Store, key: TurnKey) -> Sample | None:
    row = await store.one(_LATEST, session=key.session, n=key.n)
    return None if row is None else Sample(**row)


async def add_sample(store: Store, key: TurnKey, cpu_percent: float, memory_bytes: int, disk_bytes: int) -> None:
    values = {"at": store.now(), "cpu": cpu_percent, "memory": memory_bytes, "disk": disk_bytes}
    await store.run(_ADD, session=key.session, n=key.n, **values)
