"""One row for each request at the model: reserved before it is made, settled after; and each payer's sum of a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from bot.models import InstallationId, RepoId, SessionId, TurnKey, Usage
from bot.store.base import Database, Store
from bot.store.rows import Row, many, one, run

_MONEY = """
COALESCE(SUM(cost_usd), 0) AS usd, COALESCE(SUM(unconfirmed_usd), 0) AS unconfirmed,
COALESCE(SUM(CASE WHEN state = 'reserved' THEN reserved_usd ELSE 0 END), 0) AS reserved,
COALESCE(SUM(CASE WHEN state = 'reserved' THEN 1 ELSE 0 END), 0) AS open
"""
_TOKENS = """
COALESCE(SUM(input_tokens), 0) AS input_tokens, COALESCE(SUM(output_tokens), 0) AS output_tokens,
COALESCE(SUM(cache_read_tokens), 0) AS cache_read_tokens, COALESCE(SUM(cache_write_tokens), 0) AS cache_write_tokens
"""


NO_REPO = RepoId(0)
DAY_SECONDS = 86_400


class Payer(StrEnum):
    """Who may have a limit over all that is spent for it; the value is the column."""

    INSTALLATION = "installation_id"
    REPO = "repo_id"
    USER = "user_id"


@dataclass(frozen=True)
class Payers:
    """For whom a request is made; 0 where that is nobody we know."""

    installation: InstallationId
    repo: RepoId = NO_REPO
    user: int = 0

    def number(self, payer: Payer) -> int:
        return {Payer.INSTALLATION: self.installation, Payer.REPO: self.repo, Payer.USER: self.user}[payer]


@dataclass(frozen=True)
class Window:
    """What a limit looks at: all that a payer has spent since then, the first second of a day of UTC."""

    payer: Payer
    since: float


@dataclass(frozen=True)
class Cost:
    """Sums over spend rows; `usd` is confirmed, and nothing else is in it."""

    usd: float
    usage: Usage
    reserved_usd: float = 0.0
    """What the `open` requests under way may cost at most."""
    open: int = 0
    unconfirmed_usd: float = 0.0
    """What those may have cost beside at most whose end nobody saw."""

    @property
    def counted_usd(self) -> float:
        """By which limits go."""
        return self.usd + self.unconfirmed_usd


@dataclass(frozen=True)
class Settlement:
    """How a request ended. `abandoned`: its answer was not read to the end."""

    cost_usd: float
    usage: Usage
    status: int | None
    abandoned: bool = False
    unconfirmed_usd: float = 0.0
    """What it may have cost beside, at most."""


@dataclass(frozen=True)
class Reserve:
    model: str
    usd: float
    at: float


async def settle(store: Store, claim_id: str, end: Settlement) -> None:
    """Idempotent: only a reserved row is settled."""
    await store.write(lambda db: _settle(db, claim_id, end))


async def abandon_open(store: Store) -> int:
    """For the start of the service: of what was under way when it died nothing is confirmed, and all it could cost is
    counted."""

    def work(db: Database) -> int:
        left = many(db, "SELECT id, reserved_usd FROM spend WHERE state = 'reserved'")
        for row in left:
            _settle(db, row["id"], Settlement(0.0, Usage(), None, True, row["reserved_usd"]))
        return len(left)

    return await store.write(work)


async def was_refused(store: Store, key: TurnKey) -> bool:
    """Whether a request of the turn may have met a provider that does not accept us: one that is open counts, too."""
    sql = """
    SELECT 1 FROM spend WHERE session_id = :session AND turn = :n
      AND (state = 'reserved' OR status IN (401, 403)) LIMIT 1
    """
    return await store.read(lambda db: one(db, sql, session=key.session, n=key.n)) is not None


async def turn_cost(store: Store, key: TurnKey) -> Cost:
    return await store.read(lambda db: of_turn(db, key))


async def thread_costs(store: Store, thread_id: str) -> list[tuple[TurnKey, Cost]]:
    """Of each turn on the thread that has spent something, in their order."""
    sql = f"""
    SELECT spend.session_id, spend.turn, {_MONEY}, {_TOKENS} FROM spend
    JOIN sessions ON sessions.id = spend.session_id WHERE sessions.thread_id = :thread
    GROUP BY spend.session_id, spend.turn, sessions.created_at ORDER BY sessions.created_at, spend.turn
    """  # noqa: S608 - constants above
    rows = await store.read(lambda db: many(db, sql, thread=thread_id))
    return [(TurnKey(SessionId(row["session_id"]), row["turn"]), _cost(row)) for row in rows]


async def in_windows(store: Store, payers: Payers, windows: Sequence[Window]) -> list[Cost | None]:
    return await store.read(lambda db: [of_window(db, payers, window) for window in windows])


def insert(db: Database, claim_id: str, key: TurnKey, payers: Payers, reserve: Reserve) -> None:
    """Inside the transaction that judged it."""
    sql = """
    INSERT INTO spend (id, session_id, turn, installation_id, repo_id, user_id, model, state, reserved_usd, at)
    VALUES (:id, :session, :turn, :installation, :repo, :user, :model, 'reserved', :usd, :at)
    """
    who = {"installation": payers.installation, "repo": payers.repo, "user": payers.user}
    run(db, sql, id=claim_id, session=key.session, turn=key.n, **who, **asdict(reserve))


async def narrow(store: Store, claim_id: str, less_usd: float) -> None:
    """A request under way turns out to cost at most so much less than it has reserved."""
    await store.write(lambda db: add(db, claim_id, -less_usd))


def add(db: Database, claim_id: str, usd: float) -> None:
    sql = "UPDATE spend SET reserved_usd = reserved_usd + :usd WHERE id = :id AND state = 'reserved'"
    run(db, sql, usd=usd, id=claim_id)


def of_turn(db: Database, key: TurnKey) -> Cost:
    return _sum(db, "session_id = :session AND turn = :turn", session=key.session, turn=key.n)


def of_window(db: Database, payers: Payers, window: Window) -> Cost | None:
    """The money alone; None where the payer is nobody we know, and so has no limit."""
    number = payers.number(window.payer)
    if not number:
        return None
    sql = f"""
    SELECT COALESCE(SUM(reserved_usd), 0) AS reserved, COUNT(*) AS open FROM spend
    WHERE state = 'reserved' AND at >= :since AND {window.payer.value} = :number
    """  # noqa: S608 - a column of ours
    under_way = one(db, sql, number=number, since=window.since)
    sql = """
    SELECT COALESCE(SUM(cost_usd), 0) AS usd, COALESCE(SUM(unconfirmed_usd), 0) AS unconfirmed FROM spend_days
    WHERE payer = :payer AND number = :number AND day >= :day
    """
    spent = one(db, sql, payer=window.payer.value, number=number, day=_day(window.since))
    assert under_way is not None and spent is not None
    return Cost(spent["usd"], Usage(), under_way["reserved"], under_way["open"], spent["unconfirmed"])


def _settle(db: Database, claim_id: str, end: Settlement) -> None:
    values: dict[str, Any] = {
        "state": "abandoned" if end.abandoned else "settled",
        "cost": end.cost_usd,
        "unconfirmed": end.unconfirmed_usd,
        "status": end.status,
        "input": end.usage.input_tokens,
        "output": end.usage.output_tokens,
        "cache_read": end.usage.cache_read_tokens,
        "cache_write": end.usage.cache_write_tokens,
    }
    sql = """
    UPDATE spend SET state = :state, cost_usd = :cost, unconfirmed_usd = :unconfirmed, status = :status,
        input_tokens = :input, output_tokens = :output, cache_read_tokens = :cache_read,
        cache_write_tokens = :cache_write
    WHERE id = :id AND state = 'reserved' RETURNING installation_id, repo_id, user_id, at
    """
    settled = one(db, sql, id=claim_id, **values)
    if settled is not None and (end.cost_usd or end.unconfirmed_usd):
        add_to_day(db, settled, end.cost_usd, end.unconfirmed_usd)


def add_to_day(db: Database, settled: Row, usd: float, unconfirmed_usd: float) -> None:
    """To the day on which the request was made, whenever it ended."""
    sql = """
    INSERT INTO spend_days (payer, number, day, cost_usd, unconfirmed_usd)
    VALUES (:payer, :number, :day, :usd, :unconfirmed)
    ON CONFLICT (payer, number, day) DO UPDATE SET cost_usd = spend_days.cost_usd + excluded.cost_usd,
        unconfirmed_usd = spend_days.unconfirmed_usd + excluded.unconfirmed_usd
    """
    for payer in Payer:
        if number := settled[payer.value]:
            values = {"usd": usd, "unconfirmed": unconfirmed_usd}
            run(db, sql, payer=payer.value, number=number, day=_day(settled["at"]), **values)


def _day(at: float) -> int:
    return int(at) // DAY_SECONDS


def _sum(db: Database, where: str, **values: Any) -> Cost:
    row = one(db, f"SELECT {_MONEY}, {_TOKENS} FROM spend WHERE {where}", **values)  # noqa: S608 - constants above
    assert row is not None
    return _cost(row)


def _cost(row: Row) -> Cost:
    usage = Usage(row["input_tokens"], row["output_tokens"], row["cache_read_tokens"], row["cache_write_tokens"])
    return Cost(row["usd"], usage, row["reserved"], row["open"], row["unconfirmed"])
