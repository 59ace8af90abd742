"""docs/scale.md quotes what the simulation and the measurements say, and names metrics that exist."""

from __future__ import annotations

import re
import shlex
from dataclasses import astuple
from pathlib import Path

import pytest

from tests.capacity import figures
from tests.capacity.__main__ import plan_of
from tests.capacity.day import sizes, turn_seconds
from tests.capacity.report import most_of_an_account, report, table
from tests.capacity.simulation import Simulation

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/scale.md").read_text(encoding="utf-8")
QUOTED = re.findall(r"<!-- python -m tests\.capacity ?(.*?) ?-->\n(.*?)\n\n<!-- end -->", PAGE, re.DOTALL)


@pytest.mark.parametrize(("arguments", "quoted"), QUOTED, ids=[one or "as it is" for one, _ in QUOTED])
def test_the_tables_are_what_the_simulation_prints(arguments: str, quoted: str) -> None:
    assert quoted == table(report(Simulation(plan_of(shlex.split(arguments))).run()))


def test_two_days_are_quoted() -> None:
    assert len(QUOTED) == 2


def test_the_costs_are_those_that_the_simulation_uses() -> None:
    rows = re.findall(r"^\| (?:turn, without|request to|second of|delivery that)[^|]*\|(.*)\|$", PAGE, re.MULTILINE)
    costs = (figures.TURN, figures.REQUEST, figures.SECOND, figures.IDLE_SECOND, figures.DELIVERY)
    assert [numbers(row) for row in rows] == [pytest.approx(astuple(cost), rel=0.05) for cost in costs]


def numbers(row: str) -> tuple[float, ...]:
    """The cells of a row in units without a prefix."""
    cells = [cell.strip().replace(",", "").split() for cell in row.split("|")]
    scale = {"KB": 1000.0, "ms": 0.001}
    return tuple(float(cell[0]) * scale.get(cell[-1], 1.0) for cell in cells)


def test_the_sums_in_the_text_are_right() -> None:
    assert f"one account can have about {most_of_an_account()} turns at once" in PAGE
    second = figures.SECOND.cpu_seconds + figures.REQUEST.cpu_seconds / figures.REQUEST_EVERY.value
    each = second + figures.TURN.cpu_seconds / turn_seconds()
    assert PAGE.count(f"{100 * second:.1f} % of a core") == 2
    assert f"a core is full with {round(1 / each)}" in PAGE
    assert f"the largest of 100 has {sizes(plan_of([]))[0]:,} repositories" in PAGE


def test_the_metrics_that_are_named_exist() -> None:
    text = (ROOT / "bot/web/metrics.py").read_text(encoding="utf-8")
    named = re.findall(r"`(forgehand_\w+)`", PAGE)
    assert len(named) > 6 and [one for one in named if f'"{one}"' not in text] == []
