"""The limits over many turns: of a session, and of an installation, a repository or a person by day and month."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Self

from bot import account_settings, funds
from bot.account_settings import Choices
from bot.funds import BudgetAccount, BudgetTerms
from bot.models import InstallationId
from bot.sessions.money import budget
from bot.sessions.money.budget import BudgetDecision, Ledger
from bot.settings import Limits
from bot.store import choices, spend
from bot.store.base import Store
from bot.store.spend import Cost, Payer, Payers, Window
from bot.words import on_money

WHOSE = {Payer.INSTALLATION: "this installation", Payer.REPO: "this repository", Payer.USER: "you"}


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
        """To the person who asked, when it is reached."""
        say = on_money.day_budget_reached if self.period is Period.DAY else on_money.month_budget_reached
        return say(self.usd, WHOSE[self.payer])


@dataclass(frozen=True)
class Ceilings:
    """All that the operator has set, and an account has narrowed; 0: no limit."""

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
        """By what the account has set: the same limits in the same order, none of them higher."""
        narrow = account_settings.narrowed(Limits(day_budget_usd=self.day_usd, month_budget_usd=self.month_usd), own)
        return replace(self, day_usd=narrow.day_budget_usd, month_usd=narrow.month_budget_usd)

    def of_session(self, account: BudgetAccount) -> Ledger | None:
        """None where sessions have no limit."""
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
        """In the order of `all`."""
        return tuple(one.window(now) for one in self.all())

    def ledgers(self, spent: Sequence[Cost | None]) -> list[tuple[Ceiling, Ledger]]:
        """`spent` is what the `windows` hold."""
        pairs = zip(self.all(), spent, strict=True)
        return [(one, Ledger(cost.counted_usd, cost.reserved_usd, one.usd)) for one, cost in pairs if cost is not None]


async def of_account(store: Store, limits: Limits, installation: InstallationId) -> Ceilings:
    return Ceilings.of(limits).narrowed(await choices.of(store, installation))


async def ledgers(store: Store, ceilings: Ceilings, payers: Payers, now: float) -> list[tuple[Ceiling, Ledger]]:
    return ceilings.ledgers(await spend.in_windows(store, payers, ceilings.windows(now)))


async def reached(store: Store, ceilings: Ceilings, payers: Payers, now: float) -> Ceiling | None:
    """The first limit that leaves nothing for another request; what is under way counts only once it is settled."""
    for ceiling, ledger in await ledgers(store, ceilings, payers, now):
        if budget.decide([ledger]) is BudgetDecision.EXHAUSTED:
            return ceiling
    return None
