"""Money of a session over all its turns: its budget, what people added, and the operator's limit. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from bot.settings import Limits

BUDGET = "budget_exhausted"
"""In a turn's row: its session, or the turn itself, has no money left."""
CEILING = "ceiling_exhausted"
"""In a turn's row: a person, a repository or an installation has no money left; more for the session would not help."""


class FundsState(StrEnum):
    """LEFT: it can go on. SPENT: it can if somebody adds money. FULL: nobody may. CEILING: a day or month is used
    up."""

    LEFT = "left"
    SPENT = "spent"
    FULL = "full"
    CEILING = "ceiling"


@dataclass(frozen=True)
class BudgetTerms:
    """The operator's terms for every session: its first budget, and the most to which people may raise it."""

    budget_usd: float
    most_usd: float

    @classmethod
    def of(cls, limits: Limits) -> Self:
        return cls(limits.session_budget_usd, max(limits.session_ceiling_usd, limits.session_budget_usd))


@dataclass(frozen=True)
class Raise:
    source: str
    asked_usd: float
    login: str
    terms: BudgetTerms


@dataclass(frozen=True)
class BudgetAccount:
    """The stored money of one session; `reserved_usd` is what requests under way may still cost."""

    spent_usd: float = 0.0
    reserved_usd: float = 0.0
    budget_usd: float | None = None
    """The lower budget of its account and its repository; it only narrows the operator's."""
    added_usd: float = 0.0
    unconfirmed_usd: float = 0.0
    """The most that requests may have cost in addition whose end nobody saw."""


@dataclass(frozen=True)
class Funds:
    spent_usd: float
    """Confirmed."""
    reserved_usd: float
    limit_usd: float
    most_usd: float
    unconfirmed_usd: float = 0.0

    @property
    def counted_usd(self) -> float:
        """Return what counts against the limit: it holds even if all unconfirmed money was spent."""
        return self.spent_usd + self.unconfirmed_usd

    @property
    def left_usd(self) -> float:
        return max(self.limit_usd - self.counted_usd, 0.0)

    @property
    def means(self) -> FundsState:
        if self.counted_usd < self.limit_usd:
            return FundsState.LEFT
        return FundsState.SPENT if self.limit_usd < self.most_usd else FundsState.FULL

    def granted(self, asked_usd: float) -> float:
        """Return what is added if somebody asks for this much: enough to go on, within the operator's most."""
        behind = max(self.counted_usd - self.limit_usd, 0.0)
        more = asked_usd if asked_usd > behind else behind + asked_usd
        return max(min(more, self.most_usd - self.limit_usd), 0.0)

    def after(self, added_usd: float) -> Funds:
        return replace(self, limit_usd=self.limit_usd + added_usd)


def of(account: BudgetAccount, terms: BudgetTerms) -> Funds:
    """Apply the terms: an account and a repository only narrow the budget; what people added comes on top."""
    base = terms.budget_usd if account.budget_usd is None else min(account.budget_usd, terms.budget_usd)
    limit = min(base + account.added_usd, terms.most_usd)
    return Funds(account.spent_usd, account.reserved_usd, limit, terms.most_usd, account.unconfirmed_usd)
