"""Money: requests at the model, each payer's sums of a day, sums for people, and the budgets of sessions.

A request has one row, reserved before it is made and settled after. What nobody confirmed is counted until somebody
settles it. A session may spend what its repository lets it, and what people have added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from bot import account_settings, funds
from bot.funds import BudgetAccount, Raise
from bot.models import InstallationId, RepoId, SessionId, TokenUsage, TurnKey
from bot.store import accounts, audit, machines
from bot.store.base import Database, Store
from bot.store.rows import Row, day_of, many, one, run, statement

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
class ModelCost:
    """Sums over spend rows; `usd` is confirmed, and nothing else is in it."""

    usd: float
    usage: TokenUsage
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
    usage: TokenUsage
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
            _settle(db, row["id"], Settlement(0.0, TokenUsage(), None, True, row["reserved_usd"]))
        return len(left)

    return await store.write(work)


async def was_refused(store: Store, key: TurnKey) -> bool:
    """Whether a request of the turn may have met a provider that does not accept us: one that is open counts, too."""
    sql = """
    SELECT 1 FROM spend WHERE session_id = :session AND turn = :n
      AND (state = 'reserved' OR status IN (401, 403)) LIMIT 1
    """
    return await store.one(sql, session=key.session, n=key.n) is not None


async def turn_cost(store: Store, key: TurnKey) -> ModelCost:
    return await store.read(lambda db: of_turn(db, key))


async def thread_costs(store: Store, thread_id: str) -> list[tuple[TurnKey, ModelCost]]:
    """Of each turn on the thread that has spent something, in their order."""
    sums = """
    SELECT spend.session_id, spend.turn, {money}, {tokens} FROM spend
    JOIN sessions ON sessions.id = spend.session_id WHERE sessions.thread_id = :thread
    GROUP BY spend.session_id, spend.turn, sessions.created_at ORDER BY sessions.created_at, spend.turn
    """
    sql = statement(sums, money=_MONEY, tokens=_TOKENS)
    rows = await store.many(sql, thread=thread_id)
    return [(TurnKey(SessionId(row["session_id"]), row["turn"]), _cost(row)) for row in rows]


async def in_windows(store: Store, payers: Payers, windows: Sequence[Window]) -> list[ModelCost | None]:
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
    await store.write(lambda db: add_to_reserve(db, claim_id, -less_usd))


def add_to_reserve(db: Database, claim_id: str, usd: float) -> None:
    sql = "UPDATE spend SET reserved_usd = reserved_usd + :usd WHERE id = :id AND state = 'reserved'"
    run(db, sql, usd=usd, id=claim_id)


def of_turn(db: Database, key: TurnKey) -> ModelCost:
    return _sum(db, "session_id = :session AND turn = :turn", session=key.session, turn=key.n)


def of_window(db: Database, payers: Payers, window: Window) -> ModelCost | None:
    """The money alone; None where the payer is nobody we know, and so has no limit."""
    number = payers.number(window.payer)
    if not number:
        return None
    reserved = """
    SELECT COALESCE(SUM(reserved_usd), 0) AS reserved, COUNT(*) AS open FROM spend
    WHERE state = 'reserved' AND at >= :since AND {payer} = :number
    """
    under_way = one(db, statement(reserved, payer=window.payer.value), number=number, since=window.since)
    sql = """
    SELECT COALESCE(SUM(cost_usd), 0) AS usd, COALESCE(SUM(unconfirmed_usd), 0) AS unconfirmed FROM spend_days
    WHERE payer = :payer AND number = :number AND day >= :day
    """
    spent = one(db, sql, payer=window.payer.value, number=number, day=_day(window.since))
    assert under_way is not None and spent is not None
    return ModelCost(spent["usd"], TokenUsage(), under_way["reserved"], under_way["open"], spent["unconfirmed"])


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


def _sum(db: Database, where: str, **values: Any) -> ModelCost:
    sums = "SELECT {money}, {tokens} FROM spend WHERE {where}"
    row = one(db, statement(sums, money=_MONEY, tokens=_TOKENS, where=where), **values)
    assert row is not None
    return _cost(row)


def _cost(row: Row) -> ModelCost:
    usage = TokenUsage(row["input_tokens"], row["output_tokens"], row["cache_read_tokens"], row["cache_write_tokens"])
    return ModelCost(row["usd"], usage, row["reserved"], row["open"], row["unconfirmed"])


_OPEN = """
SELECT * FROM spend WHERE session_id = :session AND unconfirmed_usd > 0 AND state <> 'reserved' ORDER BY at, id
"""
_CONFIRM = "UPDATE spend SET cost_usd = cost_usd + :usd, unconfirmed_usd = 0 WHERE id = :id"


async def confirm(store: Store, session: SessionId, usd: float, *, by: str) -> tuple[float, list[TurnKey]]:
    """(what was open, the turns whose costs are others now: none where it cannot have cost so much)."""
    at = store.now()

    def work(db: Database) -> tuple[float, list[TurnKey]]:
        rows = many(db, _OPEN, session=session)
        most = sum(row["unconfirmed_usd"] for row in rows)
        if not rows or usd > most * (1 + 1e-9):
            return most, []
        for row in rows:
            share = usd * row["unconfirmed_usd"] / most
            run(db, _CONFIRM, usd=share, id=row["id"])
            add_to_day(db, row, share, -row["unconfirmed_usd"])
        audit.put(db, at, by, "spending settled", session, f"${usd:.4f} of up to ${most:.4f} not confirmed")
        return most, [TurnKey(session, n) for n in sorted({row["turn"] for row in rows})]

    return await store.write(work)


_DAY = day_of("spend.at")
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
GROUPS = tuple(_GROUPS)
_ALL_SPENT = statement(
    """(
SELECT session_id, turn, repo_id, user_id, installation_id, at, cost_usd, 1 AS requests, 0 AS sandbox_usd,
    CASE WHEN state = 'reserved' THEN reserved_usd ELSE 0 END AS under_way_usd,
    unconfirmed_usd, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens
FROM spend WHERE at >= :since
UNION ALL
SELECT machine_runs.session_id, machine_runs.turn, COALESCE(threads.repo_id, 0), COALESCE(turns.requester_id, 0),
    COALESCE(threads.installation_id, 0), began_at, 0, 0, {usd}, 0, 0, 0, 0, 0, 0
FROM machine_runs
LEFT JOIN turns ON turns.session_id = machine_runs.session_id AND turns.n = machine_runs.turn
LEFT JOIN sessions ON sessions.id = machine_runs.session_id LEFT JOIN threads ON threads.id = sessions.thread_id
WHERE began_at >= :since
) AS spend""",
    usd=machines.USD,
)
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
    parts = {"columns": columns, "sums": _SUMS, "spent": _ALL_SPENT, "whose": whose, "group": group, "order": order}
    sql = statement("SELECT {columns}, {sums} FROM {spent} {whose} GROUP BY {group} ORDER BY {order}", **parts)
    values = {"since": since, "now": store.now()} | ({} if installation is None else {"installation": installation})
    return [dict(row) for row in await store.many(sql, **values)]


_SESSION_SPENT = """
SELECT COALESCE(SUM(cost_usd), 0) AS spent, COALESCE(SUM(unconfirmed_usd), 0) AS unconfirmed,
       COALESCE(SUM(CASE WHEN state = 'reserved' THEN reserved_usd ELSE 0 END), 0) AS reserved
FROM spend WHERE session_id = :session AND turn <= :turn
"""
_ADDED = "SELECT COALESCE(SUM(usd), 0) AS usd FROM raises WHERE session_id = :session AND at <= :at"
_STORED = """
SELECT sessions.budget_usd, repos.installation_id FROM sessions
JOIN threads ON threads.id = sessions.thread_id JOIN repos ON repos.id = threads.repo_id WHERE sessions.id = :session
"""
_RAISE = """
INSERT INTO raises (source, session_id, usd, login, at) VALUES (:source, :session, :usd, :login, :at)
ON CONFLICT (source) DO NOTHING
"""
_LAST_TURN = 1 << 30
_END_OF_TIME = 1e15


async def account(
    store: Store, session: SessionId, *, turn: int = _LAST_TURN, at: float | None = None
) -> BudgetAccount:
    """As it stands; with `turn` and `at` as it stood at the end of that turn."""
    return await store.read(lambda db: account_of(db, session, turn, _END_OF_TIME if at is None else at))


async def first_account(store: Store, installation: InstallationId) -> BudgetAccount:
    """Of a session that is not begun yet."""
    return await store.read(lambda db: BudgetAccount(budget_usd=_allowed(db, installation, None)))


async def raise_budget(store: Store, session: SessionId, more: Raise) -> bool:
    """False where nothing may be added, or the same source has added before."""
    at = store.now()
    return await store.write(lambda db: put_raise(db, session, more, at))


async def raised_by(store: Store, source: str) -> float | None:
    """How much by this text or tick; None where it has added nothing."""
    sql = "SELECT usd FROM raises WHERE source = :source"
    row = await store.one(sql, source=source)
    return None if row is None else float(row["usd"])


async def has_raised(store: Store, source: str) -> bool:
    return await raised_by(store, source) is not None


def account_of(db: Database, session: SessionId, turn: int = _LAST_TURN, at: float = _END_OF_TIME) -> BudgetAccount:
    """As a part of a larger transaction. One that is not stored (`execute` has none) has only spent."""
    spent = one(db, _SESSION_SPENT, session=session, turn=turn)
    added = one(db, _ADDED, session=session, at=at)
    stored = one(db, _STORED, session=session)
    assert spent is not None and added is not None
    allowed = _allowed(db, InstallationId(stored["installation_id"]), stored["budget_usd"]) if stored else None
    return BudgetAccount(spent["spent"], spent["reserved"], allowed, added["usd"], spent["unconfirmed"])


def _allowed(db: Database, installation: InstallationId, repository: float | None) -> float | None:
    words = (account_settings.session_budget(accounts.read_settings(db, installation)), repository)
    return min((usd for usd in words if usd is not None), default=None)


def put_raise(db: Database, session: SessionId, more: Raise, at: float) -> bool:
    """Judged here, as a part of a larger transaction: of two who ask at once only one gets what is left."""
    usd = funds.of(account_of(db, session), more.terms).granted(more.asked_usd)
    values = {"source": more.source, "usd": usd, "login": more.login}
    if usd <= 0 or run(db, _RAISE, session=session, at=at, **values) != 1:
        return False
    said = f"${usd:.2f} of ${more.asked_usd:.2f} that were asked for, {more.source}"
    audit.note(db, audit.AuditEntry(f"raise:{more.source}", at, more.login, "budget raised", session, said))
    return True
