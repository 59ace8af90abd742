"""The arithmetic of budgets: what a request may cost at most, and whether it may still be made. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from bot.sessions.money.prices import IN_THE_US, MILLION, WEB_SEARCH_USD, Price

OUTPUT_BLOCK = 8_000
"""Output tokens that are reserved at a time; a longer answer reserves again while it streams."""
BYTES_PER_TOKEN = 3
"""Few on purpose: prompts of code and English have about four, and an estimate may only be too high."""
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


@dataclass(frozen=True)
class Estimate:
    """An upper estimate; `usd` is what is reserved before the request is forwarded."""

    input_tokens: int
    output_tokens: int
    input_usd: float
    output_usd: float

    @property
    def usd(self) -> float:
        return self.input_usd + self.output_usd


@dataclass(frozen=True)
class Ledger:
    """One limit: what is spent for sure, what requests under way may still cost, and how much is allowed."""

    spent_usd: float
    reserved_usd: float
    limit_usd: float


class Decision(StrEnum):
    """ADMIT: make the request. WAIT: it depends on requests under way. EXHAUSTED: the money is gone."""

    ADMIT = "admit"
    WAIT = "wait"
    EXHAUSTED = "exhausted"


def estimate(sizes: Sizes, price: Price) -> Estimate:
    """As if every input token were of the dearest kind that the request can have."""
    tokens = _input(sizes)
    produced = min(max(sizes.max_tokens, 0), OUTPUT_BLOCK)
    rates = price.rates_for(tokens)
    kinds = [rates.input, rates.cache_read]
    if sizes.cache is not CacheUse.NONE:
        kinds.append(rates.cache_write)
    if sizes.cache is CacheUse.LONG:
        kinds.append(rates.cache_write_long)
    each = (IN_THE_US if sizes.in_the_us else 1.0) / MILLION
    searching = sizes.searches * WEB_SEARCH_USD
    return Estimate(tokens, produced, tokens * max(kinds) * each + searching, produced * rates.output * each)


def _input(sizes: Sizes) -> int:
    """The provider asks its model anew after each search: all that was read before is read, and paid, again."""
    once = -(-max(sizes.text_bytes, 0) // BYTES_PER_TOKEN) + max(sizes.images, 0) * IMAGE_TOKENS
    searches = sizes.searches
    return once * (searches + 1) + SEARCH_TOKENS * searches * (searches + 1) // 2


def decide(ledgers: Iterable[Ledger]) -> Decision:
    """The strictest word of all limits.

    A request is made while something is left, so what is spent passes a limit by one reserve at most.
    """
    worst = Decision.ADMIT
    for ledger in ledgers:
        if ledger.spent_usd >= ledger.limit_usd:
            return Decision.EXHAUSTED
        if ledger.spent_usd + ledger.reserved_usd >= ledger.limit_usd:
            worst = Decision.WAIT
    return worst


def allowance(ledgers: Iterable[Ledger]) -> float:
    """What all limits still leave beside what is spent and what the others have reserved; may be negative."""
    return min((one.limit_usd - one.spent_usd - one.reserved_usd for one in ledgers), default=0.0)
