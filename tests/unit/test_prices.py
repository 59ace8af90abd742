"""Prices are the provider's list, and nothing is counted without one."""

from __future__ import annotations

import pytest

from bot.errors import SettingsError
from bot.models import TokenUsage
from bot.sessions.money import budget
from bot.sessions.money.budget import Consumption, Prices, UnknownPrice

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("model", "usage", "dollars"),
    [
        ("claude-opus-5-5", TokenUsage(20, 394, 59_296, 1_694), 0.0282892),
        ("claude-opus-5-5", TokenUsage(236, 4_051, 916_697, 48_424), 0.5074234),
        ("claude-sonnet-5-5", TokenUsage(20, 394, 58_963, 1_684), 0.0140863),
    ],
)
def test_agrees_with_what_the_client_counted_in_recorded_runs(model: str, usage: TokenUsage, dollars: float) -> None:
    assert budget.cost(Prices().of(model), Consumption(usage)) == pytest.approx(dollars)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("opus", "claude-opus-5-5"),
        ("Sonnet", "claude-sonnet-5-5"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("claude-sonnet-4-5-20250929[1m]", "claude-sonnet-4-5"),
        ("claude-opus-5-5[1m]", "claude-opus-5-5"),
        ("claude-opus-5", "claude-opus-5"),
    ],
)
def test_the_same_model_under_its_names(written: str, meant: str) -> None:
    assert budget.canonical(written) == meant
    assert Prices().of(written) is Prices().of(meant)


@pytest.mark.parametrize("model", ["claude-opus-9", "claude-opus-5-55", "gpt-9", "", "claude-opus-5-5-fast", "`x`\n@y"])
def test_an_unknown_model_is_refused_and_its_name_made_harmless(model: str) -> None:
    with pytest.raises(UnknownPrice) as caught:
        Prices().of(model)
    assert "\n" not in str(caught.value)
    assert str(caught.value).split(" It can use ")[0].count("`") == 2


def test_a_long_prompt_is_dearer_as_a_whole() -> None:
    price = Prices().of("claude-haiku-5-5")
    assert budget.cost(price, Consumption(TokenUsage(100_000))) == pytest.approx(0.01)
    assert budget.cost(price, Consumption(TokenUsage(1, 0, 100_000))) == pytest.approx((0.5 + 5_000) / MILLION)


def test_what_the_bill_tells_apart() -> None:
    price = Prices().of("claude-opus-5-5")
    assert budget.cost(price, Consumption(TokenUsage(cache_write_tokens=MILLION))) == pytest.approx(5)
    assert budget.cost(price, Consumption(TokenUsage(cache_write_tokens=MILLION), cache_write_long=MILLION)) == 8
    assert budget.cost(price, Consumption(TokenUsage(cache_write_tokens=10), cache_write_long=MILLION)) < 0.001
    assert budget.cost(price, Consumption(web_searches=3)) == pytest.approx(0.03)
    assert budget.cost(price, Consumption(TokenUsage(MILLION), in_the_us=True)) == pytest.approx(4.4)


def test_the_operators_price_wins_and_adds_models() -> None:
    table = Prices({"opus": {"input": 1, "output": 2}, "my-model": {"input": 1, "output": 2, "cache_read": 0.5}})
    assert budget.cost(table.of("claude-opus-5-5"), Consumption(TokenUsage(MILLION, MILLION))) == 3
    assert table.of("my-model").rates.cache_read == 0.5
    assert table.of("claude-opus-5-5").rates.cache_read == 1, "without a word of a discount there is none"


@pytest.mark.parametrize(
    "values",
    [{"input": 1}, {"input": 1, "output": -1}, {"input": 1, "output": 2, "x": 3}, {"input": 1, "output": float("nan")}],
)
def test_a_bad_price_is_refused_with_its_models_name(values: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match="my-model"):
        Prices({"my-model": values})
