"""What a token costs: the one table of prices; a model that is not in it has no price and is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
    """What each further token of the answer costs."""
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
