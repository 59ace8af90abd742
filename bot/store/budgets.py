"""What each conversation has spent, what its repository lets it spend, and what people have added to that."""

from __future__ import annotations

from bot import account_settings, funds
from bot.funds import BudgetAccount, Raise
from bot.models import InstallationId, SessionId
from bot.store import audit, choices
from bot.store.base import Database, Store
from bot.store.rows import one, run

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
    row = await store.read(lambda db: one(db, sql, source=source))
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
    words = (account_settings.session_budget(choices.read_settings(db, installation)), repository)
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
