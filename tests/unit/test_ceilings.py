"""Limits over days and months, and what the agent is told as its own comes near."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.funds import FundsState
from bot.models import InstallationId, Outcome, RepoId, TokenUsage
from bot.sessions.money import spending_limits
from bot.sessions.money.spending_limits import Ceiling, Ceilings, Period
from bot.settings import read_limits
from bot.store.spend import ModelCost, Payer, Payers
from bot.words import endings, on_money

shares = st.floats(0, 2, allow_nan=False)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("now", "day", "month"),
    [
        ("2026-11-18T12:00:00", "2026-11-18", "2026-11-01"),
        ("2026-11-01T00:00:00", "2026-11-01", "2026-11-01"),
        ("2024-02-29T23:59:59.999", "2024-02-29", "2024-02-01"),
    ],
)
def test_days_and_months_begin_at_midnight_utc(now: str, day: str, month: str) -> None:
    for period, began in ((Period.DAY, day), (Period.MONTH, month)):
        assert Ceiling(Payer.REPO, period, 1).window(at(now)).since == at(began)


def test_only_what_is_set_is_a_limit() -> None:
    limits = read_limits({"FORGEHAND_USER_DAY_BUDGET": "3", "FORGEHAND_REPO_MONTH_BUDGET": "40"})
    assert [(one.payer, one.period, one.usd) for one in Ceilings.of(limits).all()] == [
        (Payer.USER, Period.DAY, 3),
        (Payer.REPO, Period.MONTH, 40),
        (Payer.INSTALLATION, Period.DAY, 50),
        (Payer.INSTALLATION, Period.MONTH, 500),
    ]


def test_who_is_not_known_has_no_limit_of_that_kind() -> None:
    ceilings = Ceilings(day_usd=1, month_usd=0, user_day_usd=2)
    found = ceilings.ledgers([None, ModelCost(0.5, TokenUsage(), 0.25)])
    assert [(one.payer, ledger.spent_usd, ledger.reserved_usd) for one, ledger in found] == [
        (Payer.INSTALLATION, 0.5, 0.25)
    ]
    assert Payers(InstallationId(1)).number(Payer.USER) == 0
    assert Payers(InstallationId(1), RepoId(2), 3).number(Payer.REPO) == 2


@pytest.mark.parametrize("payer", list(Payer))
@pytest.mark.parametrize("period", list(Period))
def test_every_limit_has_a_polite_sentence_that_says_when_it_is_over(payer: Payer, period: Period) -> None:
    sentence = Ceiling(payer, period, 12.5).sentence()
    assert "$12.50" in sentence and "starts again" in sentence
    assert {Payer.USER: "you", Payer.REPO: "repository", Payer.INSTALLATION: "installation"}[payer] in sentence


@given(money=shares, time=shares)
def test_the_agent_is_told_between_eight_tenths_and_the_end(money: float, time: float) -> None:
    note = spending_limits.wrap_up_note(money, time)
    near = [name for name, share in (("money", money), ("time", time)) if share >= spending_limits.WRAP_UP_SHARE]
    if max(money, time) >= 1 or not near:
        assert note is None
    else:
        assert note is not None
        assert [name for name in ("money", "time") if f"80% of the {name}" in note] == near


def test_more_budget_is_offered_only_where_it_helps() -> None:
    assert "continue +3" in endings.what_next(Outcome.OVER_BUDGET, "/claude", FundsState.SPENT)
    assert "`/claude continue`" in endings.what_next(Outcome.OVER_BUDGET, "/claude", FundsState.LEFT)
    assert "a new issue" in endings.what_next(Outcome.OVER_BUDGET, "/claude", FundsState.FULL)
    offered = endings.what_next(Outcome.OVER_BUDGET, "/claude", FundsState.CEILING)
    assert "+3" not in offered and "--budget" not in offered and "`/claude continue`" in offered


def test_the_cost_of_a_thread_in_one_line() -> None:
    assert on_money.cost([], TokenUsage()) == "This thread has cost nothing yet."
    one = on_money.cost([(1, 0.00125)], TokenUsage(1000, 234), under_way_usd=0.32, unconfirmed_usd=0.12)
    assert one == (
        "This thread has cost **$0.0013** so far, and up to $0.12 not confirmed (1,234 tokens). A request is under way "
        "and not counted yet; it may cost up to $0.32. “Not confirmed” is what cut-off answers may have "
        "cost, after a stop for example. It counts until the operator settles it."
    )
    assert "onfirmed" not in on_money.cost([(1, 0.5)], TokenUsage(), under_way_usd=0.32)
    many = on_money.cost([(n, 0.5) for n in range(1, 31)], TokenUsage())
    assert many.startswith("This thread has cost **$15.00** so far (0 tokens).")
    assert "The last 20 of 30 turns:\n\n| turn | dollars |\n|--:|--:|\n| 11 | $0.50 |" in many
    assert many.endswith("\n| 30 | $0.50 |")
