"""Estimates the cost and the time of work by the figures of similar turns that have ended. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from bot.kinds.shape import WorkEstimate

LEAST = 5
"""Fewer turns say too little for an estimate."""
MOST = 30
"""Only the newest count, because a repository and its models change."""
RARELY = 0.9
"""The share of turns that stay within the upper figures of an estimate."""


class EstimateScope(StrEnum):
    """The place of the similar turns, nearest first."""

    REPOSITORY = "repository"
    ACCOUNT = "account"
    INSTALLATION = "installation"
    """All accounts of this service."""


class TurnFigures(NamedTuple):
    usd: float
    seconds: float


def of(known: Sequence[TurnFigures], kind: str, scope: EstimateScope) -> WorkEstimate | None:
    """WorkEstimate by the newest MOST of `known`; None if there are too few."""
    counted = known[:MOST]
    if len(counted) < LEAST:
        return None
    usd, seconds = sorted(one.usd for one in counted), sorted(one.seconds for one in counted)
    return WorkEstimate(
        kind=kind,
        scope=scope.value,
        turns=len(counted),
        likely_usd=_quantile(usd, 0.5),
        most_usd=_quantile(usd, RARELY),
        likely_seconds=_quantile(seconds, 0.5),
        most_seconds=_quantile(seconds, RARELY),
    )


def held(estimate: WorkEstimate, actual: TurnFigures) -> tuple[bool, bool]:
    """Tell whether the price and the time stayed within the upper figures."""
    return actual.usd <= estimate.most_usd, actual.seconds <= estimate.most_seconds


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Place the share among the gaps between the values: so a next value stays below it as often as it says.

    Below ten values that is the largest one."""
    place = min(max(share * (len(ordered) + 1), 1.0), float(len(ordered)))
    below = int(place)
    above = min(below, len(ordered) - 1)
    return ordered[below - 1] + (place - below) * (ordered[above] - ordered[below - 1])
