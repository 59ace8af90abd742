"""What a session may spend in all its turns: its budget, what people added to that, and the operator's most. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from bot.settings import Limits

BUDGET = "budget_exhausted"
"""What a turn's row says where its session, or the turn itself, has no money left."""
CEILING = "ceiling_exhausted"
"""Where that of a person, a repository or an installation is gone: more for the session would not help."""


class FundsState(StrEnum):
    """LEFT: it can go on. SPENT: once somebody adds to it. FULL: nobody may. CEILING: a day or month is used up."""

    LEFT = "left"
    SPENT = "spent"
    FULL = "full"
    CEILING = "ceiling"


@dataclass(frozen=True)
class BudgetTerms:
    """The operator's for every session: what it begins with, and up to what people may raise that."""

    budget_usd: float
    most_usd: float

    @classmethod
    def of(cls, limits: Limits) -> Self:
        return cls(limits.session_budget_usd, max(limits.session_ceiling_usd, limits.session_budget_usd))


@dataclass(frozen=True)
class Raise:
    """So many dollars more, as far as the operator's terms allow, and who said so."""

    source: str
    asked_usd: float
    login: str
    terms: BudgetTerms


@dataclass(frozen=True)
class BudgetAccount:
    """What is stored of one session; `reserved_usd` is what requests under way may still cost."""

    spent_usd: float = 0.0
    reserved_usd: float = 0.0
    budget_usd: float | None = None
    """The word of its account and of its repository, the lower of them, which narrows the operator's."""
    added_usd: float = 0.0
    unconfirmed_usd: float = 0.0
    """What requests whose end nobody saw may have cost beside, at most."""


@dataclass(frozen=True)
class Funds:
    """How a session stands."""

    spent_usd: float
    """Confirmed."""
    reserved_usd: float
    limit_usd: float
    most_usd: float
    unconfirmed_usd: float = 0.0

    @property
    def counted_usd(self) -> float:
        """The limit goes by this: it holds also if all that is not confirmed came true."""
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
        """Returns what is added when somebody asks for this much: enough to go on, within the operator's most."""
        behind = max(self.counted_usd - self.limit_usd, 0.0)
        more = asked_usd if asked_usd > behind else behind + asked_usd
        return max(min(more, self.most_usd - self.limit_usd), 0.0)

    def after(self, added_usd: float) -> Funds:
        return replace(self, limit_usd=self.limit_usd + added_usd)


def of(account: BudgetAccount, terms: BudgetTerms) -> Funds:
    """An account and a repository only narrow it; what people have added comes on top, up to the operator's most."""
    base = terms.budget_usd if account.budget_usd is None else min(account.budget_usd, terms.budget_usd)
    limit = min(base + account.added_usd, terms.most_usd)
    return Funds(account.spent_usd, account.reserved_usd, limit, terms.most_usd, account.unconfirmed_usd)
