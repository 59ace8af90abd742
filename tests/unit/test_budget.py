"""The arithmetic of budgets holds for every order in which requests come and end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.models import TokenUsage
from bot.sessions.money import budget
from bot.sessions.money.budget import BudgetDecision, CacheUse, Consumption, Ledger, Prices, Sizes

MODELS = ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-sonnet-4-5", "claude-fable-5-1"]
money = st.floats(0, 1_000, allow_nan=False)


@pytest.mark.review("security-2")
@pytest.mark.review("suspected-2")
def test_a_reserve_is_the_input_at_its_dearest_and_all_of_the_output() -> None:
    found = budget.estimate(Sizes(299_000, 0, 32_000, CacheUse.SHORT), Prices().of("claude-opus-5-5"))
    assert (found.input_tokens, found.output_tokens) == (300_000, 32_000)
    assert found.input_usd == pytest.approx(1.5)
    assert found.output_usd == pytest.approx(0.64)


def test_no_request_takes_in_or_gives_out_more_than_any_model_does() -> None:
    sizes = Sizes(32 << 20, 9_000, 10**400, CacheUse.NONE)
    found = budget.estimate(sizes, Prices().of("claude-opus-5-5"))
    assert (found.input_tokens, found.output_tokens) == (budget.WINDOW_TOKENS, budget.WINDOW_TOKENS)


def test_an_image_counts_by_the_piece() -> None:
    price = Prices().of("claude-opus-5-5")
    assert budget.estimate(Sizes(0, 2, 0, CacheUse.NONE), price).input_usd == pytest.approx(0.044)


@given(
    model=st.sampled_from(MODELS),
    tokens=st.lists(st.integers(0, budget.WINDOW_TOKENS // 4), min_size=4, max_size=4),
    cache=st.sampled_from(CacheUse),
    searches=st.integers(0, 8),
    in_the_us=st.booleans(),
    written=st.integers(0, 128_000),
    is_opaque=st.booleans(),
)
def test_no_request_within_its_sizes_costs_more_than_its_reserve(
    model: str,
    tokens: list[int],
    cache: CacheUse,
    searches: int,
    in_the_us: bool,
    written: int,
    is_opaque: bool,
) -> None:
    plain, read, short, long = tokens
    short = short if cache is not CacheUse.NONE else 0
    long = long if cache is CacheUse.LONG else 0
    total = plain + read + short + long
    price = Prices().of(model)
    found_on_the_web = sum(n * budget.SEARCH_TOKENS for n in range(1, searches + 1))
    usage = TokenUsage(
        plain * (searches + 1) + found_on_the_web, written, read * (searches + 1), (short + long) * (searches + 1)
    )
    used = Consumption(usage, long * (searches + 1), searches, in_the_us)
    size = 1_000 if is_opaque else total
    sizes = Sizes(size, 0, written, cache, searches, in_the_us, is_opaque)
    found = budget.estimate(sizes, price)
    assert budget.cost(price, used) <= found.usd * (1 + 1e-9)


@given(spent=money, reserved=money, limit=money)
def test_a_decision_follows_from_the_sums(spent: float, reserved: float, limit: float) -> None:
    decision = budget.decide([Ledger(spent, reserved, limit)])
    assert (decision is BudgetDecision.EXHAUSTED) == (spent >= limit)
    assert (decision is BudgetDecision.ADMIT) == (spent + reserved < limit)


@given(st.lists(st.builds(Ledger, money, money, money), min_size=1))
def test_the_strictest_limit_decides(ledgers: list[Ledger]) -> None:
    alone = [budget.decide([one]) for one in ledgers]
    order = [BudgetDecision.ADMIT, BudgetDecision.WAIT, BudgetDecision.EXHAUSTED]
    assert budget.decide(ledgers) is max(alone, key=order.index)
    assert budget.left(ledgers) == min(budget.left([one]) for one in ledgers)


@given(
    limit=st.floats(0.01, 50),
    requests=st.lists(st.tuples(st.floats(0.001, 5), st.floats(0, 1), st.booleans()), max_size=60),
)
def test_whatever_comes_in_parallel_the_limit_is_passed_by_one_reserve_at_most(
    limit: float, requests: list[tuple[float, float, bool]]
) -> None:
    spent, largest = 0.0, 0.0
    under_way: list[tuple[float, float]] = []
    for reserve, used, ends in requests:
        if budget.decide([Ledger(spent, sum(one for one, _ in under_way), limit)]) is BudgetDecision.ADMIT:
            under_way.append((reserve, used))
            largest = max(largest, reserve)
        if ends and under_way:
            ended, share = under_way.pop(0)
            spent += ended * share
        assert spent + sum(one for one, _ in under_way) <= limit + largest + 1e-9
