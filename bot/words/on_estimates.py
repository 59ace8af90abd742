"""Says what work is likely to cost, before it begins, and asks whether it may."""

from __future__ import annotations

from bot.estimates import RARELY, EstimateScope
from bot.kinds.shape import WorkEstimate

_WHERE = {
    EstimateScope.REPOSITORY: "here",
    EstimateScope.ACCOUNT: "in other repositories of this account",
    EstimateScope.INSTALLATION: "elsewhere on this service",
}
_HEADLINES = {
    "": "💰 Waiting for a yes to the price",
    "open": "💰 Waiting for a yes to the price",
    "approved": "💰 The price was approved",
    "denied": "💰 The price was turned down",
}
_RARELY = f"{RARELY * 10:.0f} of 10"


def expected(estimate: WorkEstimate) -> str:
    """Say it in one line of the live comment; empty if too little is known."""
    return f"Similar work {_where(estimate)} {_figures(estimate)}." if estimate.kind else ""


def asks(estimate: WorkEstimate, above_usd: float, approval_id: str, days: int) -> str:
    return (
        f"**May this cost that much?** {expected(estimate)} This repository wants to be asked above "
        f"{_dollars(above_usd)} (`ask_above`). Nothing has begun, and waiting costs nothing. You can say yes for "
        f"{days} days; the id is `{approval_id}`."
    )


def headline(state: str) -> str:
    return _HEADLINES.get(state, "💰 The question about the price is no longer open")


def what_next(command: str) -> str:
    return f"Tick an answer below, or comment `{command} approve` to begin, or `{command} …` with something smaller."


def expired(approval_id: str, command: str) -> str:
    return (
        f"Nobody agreed to the price in time, so the question `{approval_id}` has expired. "
        f"`{command} retry` asks again."
    )


def hit_rate(turns: int, held_usd: int, held_seconds: int) -> str:
    """Say how often the upper figures of the estimates held; empty without any."""
    if not turns:
        return ""
    counted = "1 turn" if turns == 1 else f"{turns} turns"
    return (
        f"{counted} had an estimate. {held_usd / turns:.0%} stayed within its upper price, and "
        f"{held_seconds / turns:.0%} within its upper time. The goal is {RARELY:.0%}."
    )


def _where(estimate: WorkEstimate) -> str:
    return _WHERE[EstimateScope(estimate.scope)]


def _figures(estimate: WorkEstimate) -> str:
    usually, at_most = _minutes(estimate.likely_seconds), _minutes(estimate.most_seconds)
    if estimate.most_usd:  # else its requests are not metered
        usually = f"{_dollars(estimate.likely_usd)} and {usually}"
        at_most = f"{_dollars(estimate.most_usd)} and {at_most}"
    return f"usually takes {usually}; {_RARELY} turns took at most {at_most}"


def _dollars(usd: float) -> str:
    if usd >= 10:
        return f"${usd:.0f}"
    return f"${usd:.2f}" if usd >= 0.005 else "less than $0.01"


def _minutes(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"{minutes} minute{'s' * (minutes != 1)}"
