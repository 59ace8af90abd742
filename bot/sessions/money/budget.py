"""Knows what a token costs and what a request may cost at most; a model without a price is refused. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from bot.errors import SettingsError, UserError
from bot.models import TokenUsage

MILLION = 1_000_000
WEB_SEARCH_USD = 0.01
IN_THE_US = 1.1
"""Factor for requests that the provider promises to serve inside the US."""


class UnknownPrice(UserError):
    """Nobody knows what this model costs, so no budget could hold."""

    def __init__(self, model: str) -> None:
        shown = re.sub(r"[^A-Za-z0-9._:\[\]@/-]", "?", model)[:80]
        super().__init__(
            f"The price of the model `{shown}` is not known, so it is not used. Name another, or have its price set in "
            "FORGEHAND_PRICES."
        )


@dataclass(frozen=True)
class Rates:
    """US dollars for a million tokens of each kind."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    """Kept for five minutes."""
    cache_write_long: float
    """Kept for an hour."""


@dataclass(frozen=True)
class Price:
    """Rates, and the dearer ones that hold for a whole request once its prompt is long."""

    rates: Rates
    long_above: int | None = None
    long_rates: Rates | None = None

    def rates_for(self, prompt_tokens: int) -> Rates:
        if self.long_rates is not None and self.long_above is not None and prompt_tokens > self.long_above:
            return self.long_rates
        return self.rates


@dataclass(frozen=True)
class Consumption:
    """What one request used, with what the bill tells apart and the tokens do not."""

    usage: TokenUsage = field(default_factory=TokenUsage)
    cache_write_long: int = 0
    """How many of the cache writes are kept for an hour."""
    web_searches: int = 0
    in_the_us: bool = False

    @property
    def prompt_tokens(self) -> int:
        return self.usage.input_tokens + self.usage.cache_read_tokens + self.usage.cache_write_tokens


def _rates(input_: float, output: float, cache_read: float) -> Rates:
    return Rates(input_, output, cache_read, input_ * 1.25, input_ * 2)


_TABLE: Mapping[str, Price] = {
    "claude-haiku-5-5": Price(_rates(0.1, 0.5, 0.01), 100_000, _rates(0.5, 2.5, 0.05)),
    "claude-haiku-4-5": Price(_rates(1, 5, 0.1)),
    "claude-sonnet-5-5": Price(_rates(2, 10, 0.1)),
    "claude-sonnet-5": Price(_rates(2, 10, 0.2)),
    "claude-sonnet-4-6": Price(_rates(3, 15, 0.3)),
    "claude-sonnet-4-5": Price(_rates(3, 15, 0.3), 200_000, _rates(6, 22.5, 0.6)),
    "claude-opus-5-5": Price(_rates(4, 20, 0.2)),
    "claude-opus-5": Price(_rates(5, 25, 0.5)),
    "claude-opus-4-8": Price(_rates(5, 25, 0.5)),
    "claude-opus-4-7": Price(_rates(5, 25, 0.5)),
    "claude-opus-4-6": Price(_rates(5, 25, 0.5)),
    "claude-opus-4-5": Price(_rates(5, 25, 0.5)),
    "claude-opus-4-1": Price(_rates(15, 75, 1.5)),
    "claude-fable-5-2": Price(_rates(8, 40, 0.2)),
    "claude-fable-5-1": Price(_rates(10, 50, 0.25)),
    "claude-fable-5": Price(_rates(10, 50, 1)),
}
_ALIASES = {"opus": "claude-opus-5-5", "sonnet": "claude-sonnet-5-5", "haiku": "claude-haiku-5-5"}
_VARIANT = re.compile(r"(?:-\d{8})?(?:\[1m\])?\Z")


def canonical(model: str) -> str:
    """The id without what does not change the model: an alias, a release date, the long-context mark."""
    name = model.strip().lower()
    return _ALIASES.get(name, _VARIANT.sub("", name, count=1))


class Prices:
    """The table with the operator's own prices over it."""

    def __init__(self, overrides: Mapping[str, Mapping[str, float]] | None = None) -> None:
        """An override gives `input` and `output` in dollars for a million tokens; `cache_read`, `cache_write` and
        `cache_write_long` follow from `input` unless they are given."""
        given = {canonical(model): _override(model, values) for model, values in (overrides or {}).items()}
        self._table = {**_TABLE, **given}

    def of(self, model: str) -> Price:
        """Raises UnknownPrice: a request that cannot be counted is not forwarded."""
        price = self._table.get(canonical(model))
        if price is None:
            raise UnknownPrice(model)
        return price


def cost(price: Price, used: Consumption) -> float:
    """US dollars at list price."""
    rates, usage = price.rates_for(used.prompt_tokens), used.usage
    long_writes = min(max(used.cache_write_long, 0), usage.cache_write_tokens)
    tokens = (
        usage.input_tokens * rates.input
        + usage.output_tokens * rates.output
        + usage.cache_read_tokens * rates.cache_read
        + (usage.cache_write_tokens - long_writes) * rates.cache_write
        + long_writes * rates.cache_write_long
    )
    return tokens / MILLION * (IN_THE_US if used.in_the_us else 1.0) + used.web_searches * WEB_SEARCH_USD


def output_usd(price: Price, used: Consumption) -> float:
    return price.rates_for(used.prompt_tokens).output / MILLION * (IN_THE_US if used.in_the_us else 1.0)


def _override(model: str, values: Mapping[str, float]) -> Price:
    known = set(Rates.__dataclass_fields__)
    if not {"input", "output"} <= set(values) <= known:
        more = ", ".join(sorted(known - {"input", "output"}))
        raise SettingsError(f"FORGEHAND_PRICES: that of {model} needs `input` and `output`, and may have {more}.")
    if not all(0 <= float(value) < float("inf") for value in values.values()):
        raise SettingsError(f"FORGEHAND_PRICES: that of {model} must be made of numbers that are not negative.")
    base = _rates(float(values["input"]), float(values["output"]), float(values["input"]))
    return Price(replace(base, **{name: float(value) for name, value in values.items()}))


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
