"""One row for each request at the model: reserved before it is made, settled after. Sums are the only balance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.models import InstallationId, SessionId, TurnKey, Usage
from bot.store.base import Database, Store
from bot.store.rows import one, run

_SUMS = """
COALESCE(SUM(cost_usd), 0) AS usd,
COALESCE(SUM(CASE WHEN state = 'reserved' THEN reserved_usd ELSE 0 END), 0) AS reserved,
COALESCE(SUM(CASE WHEN state = 'reserved' THEN 1 ELSE 0 END), 0) AS open,
COALESCE(SUM(input_tokens), 0) AS input_tokens, COALESCE(SUM(output_tokens), 0) AS output_tokens,
COALESCE(SUM(cache_read_tokens), 0) AS cache_read_tokens, COALESCE(SUM(cache_write_tokens), 0) AS cache_write_tokens
"""


@dataclass(frozen=True)
class Cost:
    """Sums over spend rows; `reserved_usd` belongs to the `open` requests under way and is not in `usd`."""

    usd: float
    usage: Usage
    reserved_usd: float = 0.0
    open: int = 0


@dataclass(frozen=True)
class Settlement:
    """How a request ended. `abandoned`: its answer was not read to the end."""

    cost_usd: float
    usage: Usage
    status: int | None
    abandoned: bool = False


@dataclass(frozen=True)
class Reserve:
    model: str
    usd: float
    at: float


async def settle(store: Store, claim_id: str, end: Settlement) -> None:
    """Idempotent: only a reserved row is settled."""
    values: dict[str, Any] = {
        "id": claim_id,
        "state": "abandoned" if end.abandoned else "settled",
        "cost": end.cost_usd,
        "status": end.status,
        "input": end.usage.input_tokens,
        "output": end.usage.output_tokens,
        "cache_read": end.usage.cache_read_tokens,
        "cache_write": end.usage.cache_write_tokens,
    }
    sql = """
    UPDATE spend SET state = :state, cost_usd = :cost, status = :status, input_tokens = :input,
        output_tokens = :output, cache_read_tokens = :cache_read, cache_write_tokens = :cache_write
    WHERE id = :id AND state = 'reserved'
    """
    await store.write(lambda db: run(db, sql, **values))


async def abandon_open(store: Store) -> int:
    """For the start of the service: what was under way when it died is counted with all that it had reserved."""
    sql = "UPDATE spend SET state = 'abandoned', cost_usd = reserved_usd WHERE state = 'reserved'"
    return await store.write(lambda db: run(db, sql))


async def turn_cost(store: Store, key: TurnKey) -> Cost:
    return await store.read(lambda db: of_turn(db, key))


async def session_cost(store: Store, session: SessionId) -> Cost:
    return await store.read(lambda db: _sum(db, "session_id = :session", session=session))


async def installation_cost(store: Store, installation: InstallationId, since: float) -> Cost:
    return await store.read(lambda db: of_installation(db, installation, since))


def insert(db: Database, claim_id: str, key: TurnKey, installation: InstallationId, reserve: Reserve) -> None:
    """Inside the transaction that judged it."""
    sql = """
    INSERT INTO spend (id, session_id, turn, installation_id, model, state, reserved_usd, at)
    VALUES (:id, :session, :turn, :installation, :model, 'reserved', :usd, :at)
    """
    values = {"session": key.session, "turn": key.n, "installation": installation, "model": reserve.model}
    run(db, sql, id=claim_id, usd=reserve.usd, at=reserve.at, **values)


def add(db: Database, claim_id: str, usd: float) -> None:
    sql = "UPDATE spend SET reserved_usd = reserved_usd + :usd WHERE id = :id AND state = 'reserved'"
    run(db, sql, usd=usd, id=claim_id)


def of_turn(db: Database, key: TurnKey) -> Cost:
    return _sum(db, "session_id = :session AND turn = :turn", session=key.session, turn=key.n)


def of_installation(db: Database, installation: InstallationId, since: float) -> Cost:
    return _sum(db, "installation_id = :installation AND at >= :since", installation=installation, since=since)


def _sum(db: Database, where: str, **values: Any) -> Cost:
    row = one(db, f"SELECT {_SUMS} FROM spend WHERE {where}", **values)  # noqa: S608 - constants above
    assert row is not None
    usage = Usage(row["input_tokens"], row["output_tokens"], row["cache_read_tokens"], row["cache_write_tokens"])
    return Cost(row["usd"], usage, row["reserved"], row["open"])
