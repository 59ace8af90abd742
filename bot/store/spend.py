"""Money: requests to the model, each payer's sums per day, sums for people, and the budgets of sessions.

A request has one row, reserved before it is made and settled after. Unconfirmed money counts until the operator
settles it. A session may spend what its repository allows and what people have added."""

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
END_OF_TIME = 1e15


class Payer(StrEnum):
    """A party with a limit on all its spending; the value is the column."""

    INSTALLATION = "installation_id"
    REPO = "repo_id"
    USER = "user_id"


@dataclass(frozen=True)
class Payers:
    """The payers of a request; 0: unknown."""

    installation: InstallationId
    repo: RepoId = NO_REPO
    user: int = 0

    def number(self, payer: Payer) -> int:
        return {Payer.INSTALLATION: self.installation, Payer.REPO: self.repo, Payer.USER: self.user}[payer]


@dataclass(frozen=True)
class Window:
    """A payer's spending since the start of a UTC day: the subject of a limit."""

    payer: Payer
    since: float


@dataclass(frozen=True)
class ModelCost:
    """Sums over spend rows; `usd` is only the confirmed money."""

    usd: float
    usage: TokenUsage
    reserved_usd: float = 0.0
    """The most that the `open` requests under way may cost."""
    open: int = 0
    unconfirmed_usd: float = 0.0
    """The most that requests without a known end may have cost beside `usd`."""

    @property
    def counted_usd(self) -> float:
        """The sum that limits count."""
        return self.usd + self.unconfirmed_usd


@dataclass(frozen=True)
class Settlement:
    """The end of a request. `abandoned`: nobody read its answer to the end."""

    cost_usd: float
    usage: TokenUsage
    status: int | None
    abandoned: bool = False
    unconfirmed_usd: float = 0.0
    """The most that it may have cost beside `cost_usd`."""


@dataclass(frozen=True)
class Reserve:
    model: str
    usd: float
    at: float
    replica: str | None = None
    """The one that sees its end, where there are several."""
    question: str | None = None
    """Asked beside the work."""


async def settle(store: Store, claim_id: str, end: Settlement) -> None:
    """Settle a reserved row; safe to repeat."""
    await store.write(lambda db: _settle(db, claim_id, end))


async def abandon_open(store: Store) -> int:
    """Count requests that were under way when their service died at all they could cost, as unconfirmed."""
    open_ones = """
    SELECT id, reserved_usd FROM spend WHERE state = 'reserved'
    AND (replica IS NULL OR replica NOT IN (SELECT id FROM replicas))
    """

    def work(db: Database) -> int:
        left = many(db, open_ones)
        for row in left:
            _settle(db, row["id"], Settlement(0.0, TokenUsage(), None, True, row["reserved_usd"]))
        return len(left)

    return await store.write(work)


async def was_refused(store: Store, key: TurnKey) -> bool:
    """Tell whether the provider may have refused a request of the turn; open ones count, too."""
    sql = """
    SELECT 1 FROM spend WHERE session_id = :session AND turn = :n
      AND (state = 'reserved' OR status IN (401, 403)) LIMIT 1
    """
    return await store.one(sql, session=key.session, n=key.n) is not None


async def turn_cost(store: Store, key: TurnKey) -> ModelCost:
    return await store.read(lambda db: of_turn(db, key))


async def of_question(store: Store, key: TurnKey, question: str) -> ModelCost:
    where = "session_id = :session AND turn = :turn AND question = :question"
    return await store.read(lambda db: _sum(db, where, session=key.session, turn=key.n, question=question))


async def by_model(store: Store, key: TurnKey) -> list[tuple[str, float]]:
    """Return the models that the turn asked, in order, each with its confirmed money."""
    sql = """
    SELECT model, SUM(cost_usd) AS usd FROM spend WHERE session_id = :session AND turn = :n
    GROUP BY model ORDER BY MIN(at), model
    """
    return [(row["model"], float(row["usd"])) for row in await store.many(sql, session=key.session, n=key.n)]


async def thread_costs(store: Store, thread_id: str) -> list[tuple[TurnKey, ModelCost]]:
    """Return the costs of the turns on the thread that have spent something, in order."""
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
    """Reserve, inside the transaction that judged it."""
    sql = """
    INSERT INTO spend (id, session_id, turn, installation_id, repo_id, user_id, model, state, reserved_usd, at,
        replica, question)
    VALUES (:id, :session, :turn, :installation, :repo, :user, :model, 'reserved', :usd, :at, :replica, :question)
    """
    who = {"installation": payers.installation, "repo": payers.repo, "user": payers.user}
    run(db, sql, id=claim_id, session=key.session, turn=key.n, **who, **asdict(reserve))


async def narrow(store: Store, claim_id: str, less_usd: float) -> None:
    """Reduce the reserve of a request under way, once its cost has a lower bound."""
    await store.write(lambda db: add_to_reserve(db, claim_id, -less_usd))


def add_to_reserve(db: Database, claim_id: str, usd: float) -> None:
    sql = "UPDATE spend SET reserved_usd = reserved_usd + :usd WHERE id = :id AND state = 'reserved'"
    run(db, sql, usd=usd, id=claim_id)


def of_turn(db: Database, key: TurnKey) -> ModelCost:
    return _sum(db, "session_id = :session AND turn = :turn", session=key.session, turn=key.n)


def _sum(db: Database, where: str, **values: Any) -> ModelCost:
    sums = "SELECT {money}, {tokens} FROM spend WHERE {where}"
    row = one(db, statement(sums, money=_MONEY, tokens=_TOKENS, where=where), **values)
    assert row is not None
    return _cost(row)


def of_window(db: Database, payers: Payers, window: Window) -> ModelCost | None:
    """Return the money of a window, without tokens; None for an unknown payer, who has no limit."""
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
    sql = """
    UPDATE spend SET state = :state, cost_usd = :cost_usd, unconfirmed_usd = :unconfirmed_usd, status = :status,
        input_tokens = :input_tokens, output_tokens = :output_tokens, cache_read_tokens = :cache_read_tokens,
        cache_write_tokens = :cache_write_tokens
    WHERE id = :id AND state = 'reserved' RETURNING installation_id, repo_id, user_id, at
    """
    money = {"cost_usd": end.cost_usd, "unconfirmed_usd": end.unconfirmed_usd}
    state = "abandoned" if end.abandoned else "settled"
    settled = one(db, sql, id=claim_id, state=state, status=end.status, **money, **vars(end.usage))
    if settled is not None and (end.cost_usd or end.unconfirmed_usd):
        add_to_day(db, settled, end.cost_usd, end.unconfirmed_usd)


def add_to_day(db: Database, settled: Row, usd: float, unconfirmed_usd: float) -> None:
    """Add to the day on which the request was made, whenever it ended."""
    sql = """
    INSERT INTO spend_days (payer, number, day, cost_usd, unconfirmed_usd)
    VALUES (:payer, :number, :day, :usd, :unconfirmed)
    ON CONFLICT (payer, number, day) DO UPDATE SET cost_usd = spend_days.cost_usd + excluded.cost_usd,
        unconfirmed_usd = spend_days.unconfirmed_usd + excluded.unconfirmed_usd
    """
    same = {"day": _day(settled["at"]), "usd": usd, "unconfirmed": unconfirmed_usd}
    for payer in Payer:
        if number := settled[payer.value]:
            run(db, sql, payer=payer.value, number=number, **same)


def _day(at: float) -> int:
    return int(at) // DAY_SECONDS


def _cost(row: Row) -> ModelCost:
    usage = TokenUsage(**{name: row[name] for name in TokenUsage.__dataclass_fields__})
    return ModelCost(row["usd"], usage, row["reserved"], row["open"], row["unconfirmed"])


_OPEN = """
SELECT * FROM spend WHERE session_id = :session AND unconfirmed_usd > 0 AND state <> 'reserved' ORDER BY at, id
"""
_CONFIRM = "UPDATE spend SET cost_usd = cost_usd + :usd, unconfirmed_usd = 0 WHERE id = :id"


async def confirm(store: Store, session: SessionId, usd: float, *, by: str) -> tuple[float, list[TurnKey]]:
    """Confirm a session's open money, and return how much was open and the turns whose cost changed. Nothing changes
    if it cannot have cost so much."""
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


DAY = day_of("spend.at")
_GROUPS: Mapping[str, tuple[str, str]] = {
    "day": (f"{DAY} AS day", DAY),
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
    "model": ("spend.model", "spend.model"),
    "kind": (
        "(SELECT turns.kind FROM turns WHERE turns.session_id = spend.session_id AND turns.n = spend.turn) AS kind",
        "kind",
    ),
    "account": (
        "spend.installation_id, (SELECT account FROM installations WHERE id = spend.installation_id) AS account",
        "spend.installation_id",
    ),
}
GROUPS = tuple(_GROUPS)
ALL_SPENT = statement(
    """(
SELECT session_id, turn, repo_id, user_id, installation_id, model, at, cost_usd, 1 AS requests, 0 AS sandbox_usd,
    CASE WHEN state = 'reserved' THEN reserved_usd ELSE 0 END AS under_way_usd,
    unconfirmed_usd, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens
FROM spend WHERE at >= :since AND at < :until
UNION ALL
SELECT machine_runs.session_id, machine_runs.turn, COALESCE(threads.repo_id, 0), COALESCE(turns.requester_id, 0),
    COALESCE(threads.installation_id, 0), '', began_at, 0, 0, {usd}, 0, 0, 0, 0, 0, 0
FROM machine_runs
LEFT JOIN turns ON turns.session_id = machine_runs.session_id AND turns.n = machine_runs.turn
LEFT JOIN sessions ON sessions.id = machine_runs.session_id LEFT JOIN threads ON threads.id = sessions.thread_id
WHERE began_at >= :since AND began_at < :until
) AS spend""",
    usd=machines.USD,
)
SUMS = """
SUM(cost_usd) AS cost_usd, SUM(sandbox_usd) AS sandbox_usd, SUM(requests) AS requests,
SUM(under_way_usd) AS under_way_usd, SUM(unconfirmed_usd) AS unconfirmed_usd,
SUM(input_tokens) AS input_tokens, SUM(output_tokens) AS output_tokens,
SUM(cache_read_tokens) AS cache_read_tokens, SUM(cache_write_tokens) AS cache_write_tokens
"""


async def summed(
    store: Store,
    by: str,
    since: float,
    installation: InstallationId | None = None,
    *,
    until: float | None = None,
    repo: str = "",
) -> list[dict[str, Any]]:
    """Return sums by group, most expensive first, or by day in order; for one installation or repository, or all."""
    columns, group = _GROUPS[by]
    order = "MIN(spend.at)" if by == "day" else "SUM(cost_usd + sandbox_usd) DESC, MIN(spend.at)"
    whose: list[str] = []
    values: dict[str, Any] = {"since": since, "until": END_OF_TIME if until is None else until, "now": store.now()}
    if installation is not None:
        whose.append("spend.installation_id = :installation")
        values["installation"] = installation
    if repo:
        whose.append("spend.repo_id IN (SELECT id FROM repos WHERE LOWER(owner || '/' || name) = :repo)")
        values["repo"] = repo.lower()
    where = f"WHERE {' AND '.join(whose)}" if whose else ""
    parts = {"columns": columns, "sums": SUMS, "spent": ALL_SPENT, "whose": where, "group": group, "order": order}
    sql = statement("SELECT {columns}, {sums} FROM {spent} {whose} GROUP BY {group} ORDER BY {order}", **parts)
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


async def account(
    store: Store, session: SessionId, *, turn: int = _LAST_TURN, at: float | None = None
) -> BudgetAccount:
    """Return its present state; with `turn` and `at`, its state at the end of that turn."""
    return await store.read(lambda db: account_of(db, session, turn, END_OF_TIME if at is None else at))


async def first_account(store: Store, installation: InstallationId) -> BudgetAccount:
    """Return the account of a session that has not started yet."""
    return await store.read(lambda db: BudgetAccount(budget_usd=_allowed(db, installation, None)))


async def raise_budget(store: Store, session: SessionId, more: Raise) -> bool:
    """Add money, once for each source; False if none was added."""
    at = store.now()
    return await store.write(lambda db: put_raise(db, session, more, at))


async def raised_by(store: Store, source: str) -> float | None:
    """Return how much this text or tick has added; None: nothing."""
    row = await store.one("SELECT usd FROM raises WHERE source = :source", source=source)
    return None if row is None else float(row["usd"])


async def has_raised(store: Store, source: str) -> bool:
    return await raised_by(store, source) is not None


def account_of(db: Database, session: SessionId, turn: int = _LAST_TURN, at: float = END_OF_TIME) -> BudgetAccount:
    """Do what `account` does, within a larger transaction. A session without a row (`execute`) has no limit here."""
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
    """Do what `raise_budget` does, within a larger transaction: if two ask at once, one gets what is left."""
    usd = funds.of(account_of(db, session), more.terms).granted(more.asked_usd)
    values = {"source": more.source, "usd": usd, "login": more.login}
    if usd <= 0 or run(db, _RAISE, session=session, at=at, **values) != 1:
        return False
    said = f"${usd:.2f} of ${more.asked_usd:.2f} that were asked for, {more.source}"
    audit.note(db, audit.AuditEntry(f"raise:{more.source}", at, more.login, "budget raised", session, said))
    return True
