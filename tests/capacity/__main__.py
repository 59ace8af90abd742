"""`python -m tests.capacity [--repositories 10000 --turns 1000 --json]`: what is full first on a day of that size."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import fields

from tests.capacity import report
from tests.capacity.day import Plan
from tests.capacity.figures import FIGURES
from tests.capacity.simulation import Simulation


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description="Simulate a day of deliveries and turns.")
    for one in fields(Plan):
        made.add_argument(f"--{one.name.replace('_', '-')}", type=type(one.default), default=one.default)
    return made


def plan_of(arguments: Sequence[str]) -> Plan:
    """Read the options of a plan."""
    return Plan(**vars(parser().parse_args(arguments)))


def main() -> None:
    whole = parser()
    whole.add_argument("--json", action="store_true")
    whole.add_argument("--figures", action="store_true", help="list what it stands on, with sources")
    given = vars(whole.parse_args())
    as_json, listing = given.pop("json"), given.pop("figures")
    if listing:
        for name, figure in FIGURES.items():
            print(f"{name:20} {figure.value:>10g} {figure.unit}: {figure.source}, {figure.where}")
        return
    found = report.report(Simulation(Plan(**given)).run())
    print(json.dumps(found, indent=2) if as_json else report.table(found))


if __name__ == "__main__":
    main()
