"""Knows the limits over many turns and whether a turn's money is gone; warns the agent when it nearly is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Self

from bot import account_settings, funds, repo_config
from bot.account_settings import Choices
from bot.funds import BUDGET, CEILING, BudgetAccount, BudgetTerms, Funds
from bot.models import InstallationId, RepoId, SessionId
from bot.sessions.money import budget
from bot.sessions.money.budget import BudgetDecision, Ledger
from bot.sessions.rights import models_of
from bot.sessions.services import Services
from bot.settings import Limits
from bot.store import accounts, sessions, spend
from bot.store.base import Store
from bot.store.sessions import Turn
from bot.store.spend import ModelCost, Payer, Payers, Window
from bot.words import endings, on_money
from sandbox.execution import ExecutionEnvironment

WHOSE = {Payer.INSTALLATION: "this installation", Payer.REPO: "this repository", Payer.USER: "you"}
WRAP_UP_SHARE = 0.8
LOOK_SECONDS = 1.0
MARKS = (30, 50)
"""Minutes into the work."""
TIME_NOTE = "A note from Forgehand, which runs you: {gone} of the {all} minutes of this turn are gone."
MESSAGE_ID = "wrap-up"
"""Always the same, so that the agent hears it once, however often we restart."""
WRAP_UP_WORDS = (
    "A note from Forgehand, which runs you: {gone} of this turn is used up, and at its end you are stopped at once. "
    "Wrap up now: bring what you have into a state that can stand by itself, begin nothing new, and end with your "
    "summary, in which you say what is left to do."
)


class Period(StrEnum):
    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True)
class Ceiling:
    """One limit; days and months are those of UTC."""

    payer: Payer
    period: Period
    usd: float

    def window(self, now: float) -> Window:
        day = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        began = day if self.period is Period.DAY else day.replace(day=1)
        return Window(self.payer, began.timestamp())

    def sentence(self) -> str:
        say = on_money.day_budget_reached if self.period is Period.DAY else on_money.month_budget_reached
        return say(self.usd, WHOSE[self.payer])


@dataclass(frozen=True)
class Ceilings:
    """The operator's limits, which an account can narrow; 0: no limit."""

    day_usd: float
    month_usd: float
    user_day_usd: float = 0.0
    user_month_usd: float = 0.0
    repo_day_usd: float = 0.0
    repo_month_usd: float = 0.0
    session: BudgetTerms | None = None

    @classmethod
    def of(cls, limits: Limits) -> Self:
        return cls(
            day_usd=limits.day_budget_usd,
            month_usd=limits.month_budget_usd,
            user_day_usd=limits.user_day_budget_usd,
            user_month_usd=limits.user_month_budget_usd,
            repo_day_usd=limits.repo_day_budget_usd,
            repo_month_usd=limits.repo_month_budget_usd,
            session=BudgetTerms.of(limits),
        )

    def narrowed(self, own: Choices) -> Self:
        """Narrow by the account's choices: the same limits in the same order, none of them higher."""
        narrow = account_settings.narrowed(Limits(day_budget_usd=self.day_usd, month_budget_usd=self.month_usd), own)
        return replace(self, day_usd=narrow.day_budget_usd, month_usd=narrow.month_budget_usd)

    def of_session(self, account: BudgetAccount) -> Ledger | None:
        """Return a session's ledger; None if sessions have no limit."""
        if self.session is None:
            return None
        found = funds.of(account, self.session)
        return Ledger(found.counted_usd, found.reserved_usd, found.limit_usd)

    def all(self) -> tuple[Ceiling, ...]:
        every = (
            Ceiling(Payer.USER, Period.DAY, self.user_day_usd),
            Ceiling(Payer.USER, Period.MONTH, self.user_month_usd),
            Ceiling(Payer.REPO, Period.DAY, self.repo_day_usd),
            Ceiling(Payer.REPO, Period.MONTH, self.repo_month_usd),
            Ceiling(Payer.INSTALLATION, Period.DAY, self.day_usd),
            Ceiling(Payer.INSTALLATION, Period.MONTH, self.month_usd),
        )
        return tuple(one for one in every if one.usd > 0)

    def windows(self, now: float) -> tuple[Window, ...]:
        return tuple(one.window(now) for one in self.all())

    def ledgers(self, spent: Sequence[ModelCost | None]) -> list[tuple[Ceiling, Ledger]]:
        """Pair each limit with its ledger; `spent` belongs to `windows`."""
        pairs = zip(self.all(), spent, strict=True)
        return [(one, Ledger(cost.counted_usd, cost.reserved_usd, one.usd)) for one, cost in pairs if cost is not None]


async def ceilings_of(store: Store, limits: Limits, installation: InstallationId) -> Ceilings:
    return Ceilings.of(limits).narrowed(await accounts.settings_of(store, installation))


async def ledgers(store: Store, ceilings: Ceilings, payers: Payers, now: float) -> list[tuple[Ceiling, Ledger]]:
    return ceilings.ledgers(await spend.in_windows(store, payers, ceilings.windows(now)))


async def reached_ceiling(store: Store, ceilings: Ceilings, payers: Payers, now: float) -> Ceiling | None:
    """Find the first limit without money for another request; requests under way do not count yet."""
    for ceiling, ledger in await ledgers(store, ceilings, payers, now):
        if budget.decide([ledger]) is BudgetDecision.EXHAUSTED:
            return ceiling
    return None


@dataclass(frozen=True)
class Exhaustion:
    """Names the reached limit, for the turn's row and for people."""

    error: str
    sentence: str


def payers(turn: Turn) -> Payers:
    return Payers(turn.installation_id, RepoId(turn.repo_id), turn.requester_id)


async def exhaustion_of(services: Services, turn: Turn, *, refused: bool) -> Exhaustion | None:
    """Find the limit that ends the turn. `refused`: the gateway has said no, so reserves of others count as spent."""
    own = await spend.turn_cost(services.store, turn.key)
    if turn.budget_usd and own.counted_usd >= turn.budget_usd:
        return Exhaustion(BUDGET, endings.over_budget(turn.budget_usd))
    if spent := _session_spent(await funds_of_session(services, turn.key.session)):
        return spent
    for ceiling, ledger in await _ledgers_of(services, turn):
        decision = budget.decide([ledger])
        if decision is BudgetDecision.EXHAUSTED or (refused and decision is BudgetDecision.WAIT):
            return Exhaustion(CEILING, ceiling.sentence())
    return None


async def by_the_agents_count(services: Services, turn: Turn) -> Exhaustion:
    """Word the end of a program by its own estimate, which is all that we have if nothing is metered."""
    limit = turn.budget_usd or (await funds_of_session(services, turn.key.session)).limit_usd
    return Exhaustion(BUDGET, endings.over_budget(limit))


async def before_the_start(services: Services, turn: Turn) -> Exhaustion | None:
    """Ask again for a turn that has waited: its money may be spent by now."""
    if spent := _session_spent(await funds_of_session(services, turn.key.session)):
        return spent
    ceiling = await reached_ceiling(services.store, await _ceilings_of(services, turn), payers(turn), services.clock())
    return Exhaustion(CEILING, ceiling.sentence()) if ceiling else None


async def share_spent(services: Services, turn: Turn) -> float:
    """Return the spent share, from 0 to 1, of all that the turn can spend under every limit."""
    own = (await spend.turn_cost(services.store, turn.key)).counted_usd
    most = own + await left_usd(services, turn)
    return min(own / most, 1.0) if most > 0 else 0.0


async def left_usd(services: Services, turn: Turn) -> float:
    """Return what the turn can still spend under every limit."""
    left = [ledger.limit_usd - ledger.spent_usd for _, ledger in await _ledgers_of(services, turn)]
    if turn.budget_usd:
        left.append(turn.budget_usd - (await spend.turn_cost(services.store, turn.key)).counted_usd)
    return max(min([(await funds_of_session(services, turn.key.session)).left_usd, *left]), 0.0)


async def funds_of_session(services: Services, session: SessionId) -> Funds:
    return funds.of(await spend.account(services.store, session), BudgetTerms.of(services.settings.limits))


def is_metered(services: Services) -> bool:
    e2b = services.settings.e2b
    return e2b is None or e2b.unmetered is None


async def for_the_agent(services: Services, turn: Turn) -> float | None:
    """Return the limit for the agent's program, by its own estimate, which it reports to the agent.

    If the gateway meters, this is the turn's budget alone. The session's rest must not end a run for which somebody
    adds money, and the agent must not plan with money that somebody may add."""
    if is_metered(services):
        return turn.budget_usd or None
    session = await funds_of_session(services, turn.key.session)
    return min(turn.budget_usd or float("inf"), session.left_usd)


async def pace(services: Services, turn: Turn) -> int | None:
    """Return the number of tokens by which the model paces itself, unless the repository wants none."""
    if not repo_config.load(turn.config).pace:
        return None
    return budget.pace(services.settings.model, await left_usd(services, turn), models_of(turn))


def _session_spent(found: Funds) -> Exhaustion | None:
    if found.counted_usd < found.limit_usd:
        return None
    return Exhaustion(BUDGET, endings.session_spent(found.spent_usd, found.unconfirmed_usd, found.limit_usd))


async def _ledgers_of(services: Services, turn: Turn) -> list[tuple[Ceiling, Ledger]]:
    return await ledgers(services.store, await _ceilings_of(services, turn), payers(turn), services.clock())


async def _ceilings_of(services: Services, turn: Turn) -> Ceilings:
    return await ceilings_of(services.store, services.settings.limits, turn.installation_id)


async def remind(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Look beside the run, until the agent has the note. It gets none while it gives its answer: it would take the
    note for another question, and spend the rest on that."""
    while True:
        now = await sessions.turn(services.store, turn.key)
        time = _seconds_gone(services, now) / now.timeout_seconds if now.timeout_seconds > 0 else 0.0
        words = wrap_up_note(await share_spent(services, now), time)
        is_acting = words is not None and (await services.board.folds.of(turn.key)).is_acting
        if words is not None and is_acting and await environment.steer(turn.key.n, MESSAGE_ID, words):
            return
        await asyncio.sleep(LOOK_SECONDS)


async def tell_time(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Tell the time now and then: an agent has no other clock."""
    for minutes in (one for one in MARKS if one * 60 < turn.timeout_seconds):
        while True:
            if _seconds_gone(services, await sessions.turn(services.store, turn.key)) >= minutes * 60:
                break
            await asyncio.sleep(LOOK_SECONDS)
        words = TIME_NOTE.format(gone=minutes, all=f"{turn.timeout_seconds / 60:g}")
        await environment.steer(turn.key.n, f"time-{minutes}", words)


def _seconds_gone(services: Services, turn: Turn) -> float:
    return 0.0 if turn.work_started_at is None else services.clock() - turn.work_started_at


def wrap_up_note(money: float, time: float) -> str | None:
    """Word the note when these shares are gone. Past the end, a word more would cost a request that is refused, and
    so turn an answer that has just come into a failure."""
    if money >= 1 or time >= 1:
        return None
    shares = (("money", money), ("time", time))
    gone = [f"{WRAP_UP_SHARE:.0%} of the {name}" for name, share in shares if share >= WRAP_UP_SHARE]
    return WRAP_UP_WORDS.format(gone=" and ".join(gone)) if gone else None
