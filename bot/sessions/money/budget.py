"""The arithmetic of budgets: what a request may cost at most, and whether it may still be made. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from bot.sessions.money.prices import IN_THE_US, MILLION, WEB_SEARCH_USD, Price, Rates

OVERHEAD_TOKENS = 1_000
"""More than what the provider itself puts beside a request, such as how tools are called."""
WINDOW_TOKENS = 1_000_000
"""More than any model takes in or gives out for one request."""
BYTES_PER_TOKEN = 3
"""Rather few: words of code and English have about four. Digits, rare scripts and noise have fewer, down to one."""
IMAGE_TOKENS = 5_000
"""More than the largest image costs, whatever its size in bytes."""
SEARCH_TOKENS = 20_000
"""More than the results of one search of the provider's; what was found before is read again at each further one."""


class CacheUse(StrEnum):
    """What the request may write to the prompt cache: it decides the dearest price of an input token."""

    NONE = "none"
    SHORT = "short"
    LONG = "long"


@dataclass(frozen=True)
class Sizes:
    """What can be told of a request before it is made."""

    text_bytes: int
    images: int
    max_tokens: int
    cache: CacheUse = CacheUse.LONG
    searches: int = 0
    """How often the provider may search the web for it, at most."""
    in_the_us: bool = False
    is_opaque: bool = False
    """It holds something whose size tells nothing of what is in it: a PDF."""


@dataclass(frozen=True)
class Estimate:
    """What a request costs at most; `usd` is what is reserved before it is forwarded."""

    input_tokens: int
    output_tokens: int
    input_usd: float
    output_usd: float
    searches: int = 0
    in_the_us: bool = False
    cache: CacheUse = CacheUse.LONG

    @property
    def usd(self) -> float:
        return self.input_usd + self.output_usd


@dataclass(frozen=True)
class Ledger:
    """One limit: what is spent for sure, what requests under way may still cost, and how much is allowed."""

    spent_usd: float
    reserved_usd: float
    limit_usd: float


class BudgetDecision(StrEnum):
    """ADMIT: make the request. WAIT: it depends on requests under way. EXHAUSTED: the money is gone."""

    ADMIT = "admit"
    WAIT = "wait"
    EXHAUSTED = "exhausted"


def estimate(sizes: Sizes, price: Price) -> Estimate:
    """As if every byte were a token, every input token of the dearest kind that the request can have, and the answer as
    long as it may be: an agent that wants to spend more than there is chooses its text for it, and what is thought is
    seen, if at all, when it is paid."""
    once = WINDOW_TOKENS if sizes.is_opaque else min(_read(sizes), WINDOW_TOKENS)
    tokens = searched(once, sizes.searches)
    produced = min(max(sizes.max_tokens, 0), WINDOW_TOKENS)
    rates = price.rates_for(tokens)
    each = (IN_THE_US if sizes.in_the_us else 1.0) / MILLION
    dearest = _dearest(rates, sizes.cache) * each
    reading = tokens * dearest + sizes.searches * WEB_SEARCH_USD
    writing = produced * rates.output * each
    return Estimate(tokens, produced, reading, writing, sizes.searches, sizes.in_the_us, sizes.cache)


def _read(sizes: Sizes) -> int:
    return max(sizes.text_bytes, 0) + max(sizes.images, 0) * IMAGE_TOKENS + OVERHEAD_TOKENS


def _dearest(rates: Rates, cache: CacheUse) -> float:
    """Of the kinds of input tokens."""
    kinds = [rates.input, rates.cache_read]
    if cache is not CacheUse.NONE:
        kinds.append(rates.cache_write)
    if cache is CacheUse.LONG:
        kinds.append(rates.cache_write_long)
    return max(kinds)


def searched(tokens: int, searches: int) -> int:
    """The provider asks its model anew after each search: all that was read before is read, and paid, again."""
    return tokens * (searches + 1) + SEARCH_TOKENS * searches * (searches + 1) // 2


def decide(ledgers: Iterable[Ledger]) -> BudgetDecision:
    """The strictest word of all limits.

    A request is made while something is left, so what is spent passes a limit by one reserve at most.
    """
    worst = BudgetDecision.ADMIT
    for ledger in ledgers:
        if ledger.spent_usd >= ledger.limit_usd:
            return BudgetDecision.EXHAUSTED
        if ledger.spent_usd + ledger.reserved_usd >= ledger.limit_usd:
            worst = BudgetDecision.WAIT
    return worst


def left(ledgers: Iterable[Ledger]) -> float:
    """What all limits leave beside what is spent; may be negative. What others have reserved they need not spend: a
    request that was admitted ends where the money is gone for sure."""
    return min((one.limit_usd - one.spent_usd for one in ledgers), default=0.0)
