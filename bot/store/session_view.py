"""A session's page, read at one moment: its turns, and the data for its drawings."""

from __future__ import annotations

from dataclasses import dataclass

from bot.funds import BudgetAccount
from bot.models import SessionId, TurnState
from bot.store import machines, replicas, spend
from bot.store.base import Store
from bot.store.records import Record, Turn
from bot.store.rows import Database, many, statement
from bot.store.sessions import of_session

MOST_POINTS = 2000
"""The most points of a drawing; the newest count."""


@dataclass(frozen=True)
class Point(Record):
    at: float
    cpu_percent: float
    memory_bytes: int


@dataclass(frozen=True)
class SessionView:
    """All that a session's page shows beside the transcript."""

    turns: list[Turn]
    points: list[Point]
    spent: list[tuple[float, float]]
    """Time and dollars of each request to the model."""
    tokens: int
    account: BudgetAccount
    sandbox_usd: float
    deliveries: list[str]
    environments: list[str]
    last_seq: int
    replica: str | None
    """The replica that runs the latest turn, if there are several; only the operator needs to know its machine."""
    pull: tuple[int, str] | None = None
    """The number and the address of its pull request."""

    @property
    def usd(self) -> float:
        return sum(usd for _, usd in self.spent)


_POINTS = "SELECT at, cpu_percent, memory_bytes FROM samples WHERE session_id = :id ORDER BY at DESC LIMIT :most"
_SPENT = "SELECT at, cost_usd FROM spend WHERE session_id = :id AND cost_usd > 0 ORDER BY at"
_TOKENS = """
SELECT COALESCE(SUM(input_tokens + output_tokens + cache_read_tokens + cache_write_tokens), 0) AS tokens
FROM spend WHERE session_id = :id
"""
_DELIVERIES = "SELECT guid FROM deliveries WHERE session_id = :id ORDER BY received_at, guid LIMIT 50"
_ENVIRONMENTS = """
SELECT environment_id FROM machine_runs WHERE session_id = :id
UNION SELECT environment_id FROM sessions WHERE id = :id AND environment_id IS NOT NULL
"""
_PULL = "SELECT pull_number, pull_url FROM sessions WHERE id = :id AND pull_url IS NOT NULL"
_MACHINES = statement(
    "SELECT COALESCE(SUM({usd}), 0) AS usd FROM machine_runs WHERE session_id = :id", usd=machines.USD
)


async def of(store: Store, session: SessionId) -> SessionView:
    now = store.now()

    def work(db: Database) -> SessionView:
        [tokens] = many(db, _TOKENS, id=session)
        [paid] = many(db, _MACHINES, id=session, now=now)
        [last] = many(db, "SELECT COALESCE(MAX(seq), 0) AS seq FROM events WHERE session_id = :id", id=session)
        pulls = [(row["pull_number"], row["pull_url"]) for row in many(db, _PULL, id=session)]
        turns = of_session(db, session)
        runner = turns[-1].replica if turns and turns[-1].state is TurnState.RUNNING else None
        return SessionView(
            turns=turns,
            points=[Point.of(row) for row in many(db, _POINTS, id=session, most=MOST_POINTS)][::-1],
            spent=[(row["at"], row["cost_usd"]) for row in many(db, _SPENT, id=session)],
            tokens=int(tokens["tokens"]),
            account=spend.account_of(db, session),
            sandbox_usd=float(paid["usd"]),
            deliveries=[row["guid"] for row in many(db, _DELIVERIES, id=session)],
            environments=[row["environment_id"] for row in many(db, _ENVIRONMENTS, id=session)],
            last_seq=int(last["seq"]),
            replica=runner if runner in replicas.hosts(db) else None,
            pull=pulls[0] if pulls else None,
        )

    return await store.read(work)
