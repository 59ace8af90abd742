"""The simulation keeps to the plan, and what it says follows from it."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.capacity import figures, one_turn
from tests.capacity.day import HOUR, Asked, Plan, asked, sizes
from tests.capacity.figures import Cost
from tests.capacity.github import allowance
from tests.capacity.report import report, resources
from tests.capacity.simulation import Simulation

SMALL = Plan(repositories=600, turns=60, accounts=30, machines=66, replicas=2, skew=0.0)


class Watched(Simulation):
    """Notes the most turns at once of each repository and account."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.most: Counter[tuple[str, int]] = Counter()

    def _start(self, turn: Asked) -> None:
        super()._start(turn)
        for kind, name in (("repo_id", turn.repo_id), ("installation_id", turn.installation_id)):
            at_once = sum(getattr(one, kind) == name for one in self._running.values())
            self.most[kind, 0] = max(self.most[kind, 0], at_once)


@pytest.mark.parametrize(
    "plan",
    [SMALL, replace(SMALL, load=1.5), replace(SMALL, machines=30), replace(SMALL, accounts=1, account_turns=20)],
    ids=["as planned", "more asked", "few machines", "one account"],
)
def test_no_limit_is_passed_and_no_turn_is_lost(plan: Plan) -> None:
    run = Watched(plan)
    run.run()
    assert run.ended == run.turns == sum(1 for _ in asked(plan)) > 500
    assert 0 < run.most_running <= plan.turns
    assert 0 < run.most_machines <= plan.machines
    assert run.most["repo_id", 0] <= plan.repo_turns
    assert not plan.account_turns or run.most["installation_id", 0] <= plan.account_turns
    for one in run.accounts:
        assert max(one.content.values(), default=0) <= figures.CONTENT_AN_HOUR.value


def test_with_twice_the_plan_nothing_waits() -> None:
    run = Simulation(replace(SMALL, turns=2 * SMALL.turns, machines=2 * SMALL.machines, creations=50, load=0.45)).run()
    waits = report(run)["waits"]
    assert waits["a place"]["p99"] == waits["a machine"]["p99"] == waits["the pull request"]["p99"] == 0
    assert run.failed == run.unchecked == 0
    assert all(one.part <= 1 for one in resources(run))


def test_what_is_full_first_is_what_was_made_scarce() -> None:
    few_machines = Simulation(replace(SMALL, machines=30)).run()
    assert report(few_machines)["first"].startswith("E2B: machines")
    assert report(few_machines)["waits"]["a machine"]["p50"] > 60
    more_asked = report(Simulation(replace(SMALL, load=1.3, machines=200)).run())
    assert more_asked["first"] == "turns at once"
    assert more_asked["waits"]["a place"]["p50"] > 60


def test_one_account_is_held_up_by_github() -> None:
    plan = replace(SMALL, accounts=1, turns=200, machines=300, repo_turns=200, replicas=20)
    found = report(Simulation(plan).run())
    assert found["first"].startswith("GitHub")
    assert found["failed"] > 0 < found["refused_by_github"]
    assert found["waits"]["the pull request"]["p50"] > 60
    capped = report(Simulation(replace(plan, load=0.9 * found["an_account_at_once"] / plan.turns)).run())
    assert capped["failed"] == 0, "as many as the report says are no trouble"


def test_a_day_is_the_same_each_time() -> None:
    assert report(Simulation(SMALL).run()) == report(Simulation(SMALL).run())
    assert report(Simulation(SMALL).run()) != report(Simulation(replace(SMALL, seed=2)).run())


def test_accounts_are_as_unlike_as_the_skew_says() -> None:
    assert sizes(Plan(repositories=100, accounts=4, skew=0)) == [25, 25, 25, 25]
    uneven = sizes(Plan())
    assert sum(uneven) == 10_000 and uneven[0] > 1_900 and uneven[1] == pytest.approx(uneven[0] / 2, rel=0.01)
    assert (allowance(10), allowance(100), allowance(10_000)) == (5_000, 9_000, 12_500)


def test_the_busiest_hour_is_as_busy_as_the_plan_says() -> None:
    hours = Counter(int(one.created_at // HOUR) for one in asked(SMALL))
    each = figures.BUSY[12] / 100
    assert hours[12] == pytest.approx(hours[11] * each, rel=0.25)
    assert max(hours, key=lambda hour: hours[hour]) in (11, 14)


def test_the_command_prints_a_table_and_its_figures() -> None:
    command = (sys.executable, "-m", "tests.capacity")
    small = [
        part for one in fields(Plan) for part in (f"--{one.name.replace('_', '-')}", str(getattr(SMALL, one.name)))
    ]
    said = subprocess.run([*command, *small], capture_output=True, text=True, check=True, timeout=60).stdout
    assert "| turns at once |" in said
    listed = subprocess.run([*command, "--figures"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert len(listed.splitlines()) == len(figures.FIGURES) > 20


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(400)
async def test_a_turn_costs_what_the_simulation_takes_it_to_cost(tmp_path: Path) -> None:
    found = await one_turn.measure(tmp_path)
    for name, cost in (("turn", figures.TURN), ("request", figures.REQUEST), ("second", figures.SECOND)):
        for part in ("statements", "writes"):
            assert getattr(found[name], part) == pytest.approx(getattr(cost, part), rel=0.5), (name, part)
    assert isinstance(figures.DELIVERY, Cost) and found["turn"].content == figures.CONTENT.value
    assert found["turn"].requests == pytest.approx(figures.API_REQUESTS.value, rel=0.2)
