"""What a simulated day says: which resource is full first, how long people wait, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.bench.scheduler import share
from tests.capacity import figures
from tests.capacity.day import HOUR, turn_seconds
from tests.capacity.simulation import Simulation, peak


@dataclass(frozen=True)
class Resource:
    name: str
    used: float
    of: float

    @property
    def part(self) -> float:
        return self.used / self.of


def resources(run: Simulation) -> list[Resource]:
    """Every resource in its busiest time, the fullest first."""
    plan, minutes = run.plan, run.minutes
    content = max(max(one.content.values(), default=0) for one in run.accounts)
    requests = max(run.accounts, key=lambda one: max(one.requests.values(), default=0) / one.allowed)
    statements = peak(minutes, lambda one: one.statements)
    cores = figures.REPLICA_CORES.value
    found = [
        Resource("GitHub: new content an hour, fullest account", content, figures.CONTENT_AN_HOUR.value),
        Resource(
            "GitHub: requests an hour, fullest account", max(requests.requests.values(), default=0), requests.allowed
        ),
        Resource("E2B: machines at once", run.most_machines, plan.machines),
        Resource("E2B: new machines a second", peak(minutes, lambda one: one.creations), plan.creations),
        Resource("turns at once", run.most_running, plan.turns),
        Resource("PostgreSQL: statements a second", statements, figures.STATEMENTS_A_CORE.value * plan.database_cores),
        Resource("PostgreSQL: writes a second", peak(minutes, lambda one: one.writes), figures.WRITES_A_SECOND.value),
        Resource("replicas: cores", peak(minutes, lambda one: one.cpu_seconds), cores * plan.replicas),
        Resource("leader: cores", peak(minutes, lambda one: one.leader_seconds), cores),
        Resource(
            "gateway: Mbit/s",
            peak(minutes, lambda one: one.gateway_bytes) * 8 / 1e6,
            figures.NETWORK.value * plan.replicas,
        ),
    ]
    return sorted(found, key=lambda one: one.part, reverse=True)


def seconds(values: list[float]) -> dict[str, float]:
    return {"p50": round(share(values, 0.5), 1), "p99": round(share(values, 0.99), 1)}


def most_of_an_account() -> int:
    """The turns at once for which GitHub lets one account create comments and pull requests."""
    an_hour = figures.CONTENT_AN_HOUR.value / figures.CONTENT.value
    return int(an_hour * turn_seconds() / HOUR)


def report(run: Simulation) -> dict[str, Any]:
    found, waits = resources(run), run.waits
    return {
        "plan": vars(run.plan),
        "turns": run.turns,
        "deliveries": round(run.deliveries),
        "failed": run.failed,
        "failed_percent": round(100 * run.failed / max(1, run.turns), 1),
        "checked_beside_the_agent": run.unchecked,
        "first": found[0].name,
        "an_account_at_once": most_of_an_account(),
        "resources": [
            {"name": one.name, "used": round(one.used, 2), "of": one.of, "percent": round(100 * one.part)}
            for one in found
        ],
        "waits": {
            "a place": seconds(waits.place),
            "a machine": seconds(waits.machine),
            "the live comment": seconds(waits.comment),
            "the pull request": seconds(waits.publish),
            "the final comment": seconds(waits.final),
        },
        "refused_by_github": sum(one.refused for one in run.accounts),
        "most_waiting": run.most_waiting,
        "log_gigabytes": round(sum(one.log_bytes * 60 for one in run.minutes) / 1e9, 1),
        "machine_hours": round(run.machine_seconds / HOUR),
        "machine_dollars": round(run.machine_seconds / HOUR * figures.MACHINE_HOUR.value),
    }


def table(found: dict[str, Any]) -> str:
    """The report for people, which docs/scale.md quotes."""
    lines = [
        f"{found['turns']:,} turns from {found['deliveries']:,} deliveries in a day; {found['failed_percent']} % fail "
        "because GitHub refuses too long.",
        "",
        "| in the busiest time | used | of | full |",
        "|---|---:|---:|---:|",
    ]
    for one in found["resources"]:
        used = f"{one['used']:,.0f}" if one["used"] >= 20 else f"{one['used']:.2f}"
        lines.append(f"| {one['name']} | {used} | {one['of']:,.0f} | {one['percent']} % |")
    lines += ["", "| people wait for | p50 | p99 |", "|---|---:|---:|"]
    lines += [f"| {name} | {one['p50']:,.0f} s | {one['p99']:,.0f} s |" for name, one in found["waits"].items()]
    lines += [
        "",
        f"{found['machine_hours']:,} machine-hours, ${found['machine_dollars']:,} a day; PostgreSQL writes "
        f"{found['log_gigabytes']} GB of log.",
    ]
    return "\n".join(lines)
