"""Knows the cost of a token, the most that a request can cost, and what money buys; refuses a model without a price.

Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from enum import StrEnum

from bot.errors import SettingsError, UserError
from bot.models import TokenUsage
from bot.settings import ModelSettings

MILLION = 1_000_000
MOST_NAMED = 30
WEB_SEARCH_USD = 0.01
IN_THE_US = 1.1
"""Factor for requests that the provider promises to serve inside the US."""
OVERHEAD_TOKENS = 1_000
"""More than the provider itself adds to a request, such as how to call tools."""
WINDOW_TOKENS = 1_000_000
"""More than any model takes in or gives out for one request."""
BYTES_PER_TOKEN = 3
"""Rather few: words of code and English have about four. Digits, rare scripts and noise have fewer, down to one."""
IMAGE_TOKENS = 5_000
"""More than the largest image costs, whatever its size in bytes."""
SEARCH_TOKENS = 20_000
"""More than the results of one search of the provider's, which each further search reads again."""


class UnknownPrice(UserError):
    """Nobody knows what this model costs, so no budget could hold."""

    def __init__(self, model: str, usable: Sequence[str]) -> None:
        shown = re.sub(r"[^A-Za-z0-9._:\[\]@/-]", "?", model)[:80]
        names = ", ".join(f"`{name}`" for name in usable[:MOST_NAMED])
        super().__init__(
            f"Forgehand does not know the price of the model `{shown}`, so it does not use it. It can use {names}."
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
    """The use of one request, in the detail of the bill."""

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


# Without claude-opus-4-1: the tested Claude Code asks for claude-opus-5-5 instead.
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
    "claude-fable-5-2": Price(_rates(8, 40, 0.2)),
    "claude-fable-5-1": Price(_rates(10, 50, 0.25)),
    "claude-fable-5": Price(_rates(10, 50, 1)),
}
_ALIASES = {"opus": "claude-opus-5-5", "sonnet": "claude-sonnet-5-5", "haiku": "claude-haiku-5-5"}
_VARIANT = re.compile(r"(?:-\d{8})?(?:\[1m\])?\Z")


def full_name(model: str) -> str:
    """Resolve a short name, because Claude Code may mean another model by it, or none."""
    name, mark, variant = model.strip().partition("[")
    return f"{_ALIASES.get(name.lower(), name)}{mark}{variant}"


def canonical(model: str) -> str:
    """Resolve a short name, and drop a release date and the long-context mark, which do not change the model."""
    return _VARIANT.sub("", full_name(model).lower(), count=1)


PACING = frozenset({
    "claude-fable-5", "claude-fable-5-1", "claude-fable-5-2", "claude-haiku-5-5", "claude-opus-4-7",
    "claude-opus-4-8", "claude-opus-5", "claude-opus-5-5", "claude-sonnet-5-5",
})  # fmt: skip
"""Models that can pace themselves by a number of tokens, at Anthropic's own API. Claude Code would
send it to all others, too."""
LEAST_PACE, MOST_PACE = 20_000, 1_000_000
"""The provider takes no smaller number. No turn comes near the end of a larger one."""


class Prices:
    """The table with the operator's own prices over it."""

    def __init__(self, overrides: Mapping[str, Mapping[str, float]] | None = None) -> None:
        """An override has `input` and `output` in dollars for a million tokens. `cache_read`, `cache_write` and
        `cache_write_long` follow from `input` unless they are given."""
        given = {canonical(model): _override(model, values) for model, values in (overrides or {}).items()}
        self._table = {**_TABLE, **given}

    @classmethod
    def at(cls, model: ModelSettings) -> Prices:
        """Return those at the provider that is set; the operator's own prices hold as they are."""
        found, at = cls(model.prices), model.provider.at
        if at is not None:
            own = {canonical(name) for name in model.prices}
            ids: dict[str, str] = {}
            for name, one in model.provider.ids.items():
                ids.setdefault(canonical(name), one)  # of two ids for one model, the first goes into requests
            for name in found._table.keys() - own:
                found._table[name] = _times(found._table[name], at.price_factor(ids.get(name, "")))
        return found

    def of(self, model: str) -> Price:
        """Raise UnknownPrice for an unknown model: the gateway forwards only requests that it can count."""
        price = self._table.get(canonical(model))
        if price is None:
            raise UnknownPrice(model, self.names)
        return price

    @property
    def names(self) -> list[str]:
        """List the models that can be named, short names first."""
        return [*(short for short, model in _ALIASES.items() if model in self._table), *self._table]


def cost(price: Price, used: Consumption) -> float:
    """Return the list price in US dollars."""
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


def _times(price: Price, factor: float) -> Price:
    def dearer(rates: Rates) -> Rates:
        return Rates(*(rate * factor for rate in astuple(rates)))

    return replace(price, rates=dearer(price.rates), long_rates=dearer(price.long_rates) if price.long_rates else None)


def _override(model: str, values: Mapping[str, float]) -> Price:
    known = set(Rates.__dataclass_fields__)
    if not {"input", "output"} <= set(values) <= known:
        more = ", ".join(sorted(known - {"input", "output"}))
        raise SettingsError(f"FORGEHAND_PRICES: the price of {model} needs `input` and `output`, and may have {more}.")
    if not all(0 <= float(value) < float("inf") for value in values.values()):
        raise SettingsError(f"FORGEHAND_PRICES: the price of {model} must hold only numbers from 0 on.")
    base = _rates(float(values["input"]), float(values["output"]), float(values["input"]))
    return Price(replace(base, **{name: float(value) for name, value in values.items()}))


def pace(settings: ModelSettings, usd: float, models: Sequence[str]) -> int | None:
    """Return about how many tokens a model may produce and newly read; None: it gets no number.

    We count each at the price of one that it produces. New input is cheaper, but each request reads the older
    conversation again, which the model's own count leaves out. A round number changes seldom between turns, so that the
    provider's cache still serves."""
    if settings.provider.at is not None or not PACING.issuperset(map(canonical, models)):
        return None
    prices = Prices.at(settings)
    dearest = max(prices.of(model).rates.output for model in models)
    bought = min(usd / dearest * MILLION, MOST_PACE) if dearest > 0 else MOST_PACE
    digit = int("1" + "0" * (len(str(int(bought))) - 1))
    return next(step * digit for step in (5, 2, 1) if step * digit <= bought) if bought >= LEAST_PACE else None


class CacheUse(StrEnum):
    """The longest cache write that a request may make: it decides the dearest price of an input token."""

    NONE = "none"
    SHORT = "short"
    LONG = "long"


@dataclass(frozen=True)
class Sizes:
    """The facts about a request that are known before it is made."""

    text_bytes: int
    images: int
    max_tokens: int
    cache: CacheUse = CacheUse.LONG
    searches: int = 0
    """How often the provider may search the web for it, at most."""
    in_the_us: bool = False
    is_opaque: bool = False
    """It holds something, such as a PDF, whose size says nothing about its tokens."""


@dataclass(frozen=True)
class Estimate:
    """The most that a request can cost; the gateway reserves `usd` before it forwards it."""

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
    """One limit, with the money spent for sure and the most that requests under way may still cost."""

    spent_usd: float
    reserved_usd: float
    limit_usd: float


class BudgetDecision(StrEnum):
    """ADMIT: make the request. WAIT: it depends on requests under way. EXHAUSTED: no money is left."""

    ADMIT = "admit"
    WAIT = "wait"
    EXHAUSTED = "exhausted"


def estimate(sizes: Sizes, price: Price) -> Estimate:
    """Assume the worst: every byte a token of the dearest kind, and the longest answer.

    A greedy agent chooses its text to cost the most, and its thinking shows, if at all, only on the bill."""
    read = max(sizes.text_bytes, 0) + max(sizes.images, 0) * IMAGE_TOKENS + OVERHEAD_TOKENS
    tokens = searched(WINDOW_TOKENS if sizes.is_opaque else min(read, WINDOW_TOKENS), sizes.searches)
    produced = min(max(sizes.max_tokens, 0), WINDOW_TOKENS)
    rates, each = price.rates_for(tokens), (IN_THE_US if sizes.in_the_us else 1.0) / MILLION
    reading = tokens * (_dearest(rates, sizes.cache) * each) + sizes.searches * WEB_SEARCH_USD
    writing = produced * rates.output * each
    return Estimate(tokens, produced, reading, writing, sizes.searches, sizes.in_the_us, sizes.cache)


def _dearest(rates: Rates, cache: CacheUse) -> float:
    kinds = [rates.input, rates.cache_read]
    if cache is not CacheUse.NONE:
        kinds.append(rates.cache_write)
    if cache is CacheUse.LONG:
        kinds.append(rates.cache_write_long)
    return max(kinds)


def searched(tokens: int, searches: int) -> int:
    """Count the input again for each search: the provider then asks its model again, with everything read before."""
    return tokens * (searches + 1) + SEARCH_TOKENS * searches * (searches + 1) // 2


def decide(ledgers: Iterable[Ledger]) -> BudgetDecision:
    """Take the strictest decision of all limits.

    A request is made while any money is left, so the spending passes a limit by one reserve at most.
    """
    worst = BudgetDecision.ADMIT
    for ledger in ledgers:
        if ledger.spent_usd >= ledger.limit_usd:
            return BudgetDecision.EXHAUSTED
        if ledger.spent_usd + ledger.reserved_usd >= ledger.limit_usd:
            worst = BudgetDecision.WAIT
    return worst


def left(ledgers: Iterable[Ledger]) -> float:
    """Return the money that all limits leave; may be negative. Reserved money counts as left: an admitted request
    ends only when the money is gone for sure."""
    return min((one.limit_usd - one.spent_usd for one in ledgers), default=0.0)
