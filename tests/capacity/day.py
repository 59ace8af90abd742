"""Who asks for what on one day: accounts of very different sizes, and the hours of a working day."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from bot.models import InstallationId, RepoId
from tests.capacity import figures

HOUR = 3600.0
DAY = 24 * HOUR


@dataclass(frozen=True)
class Plan:
    """What is run, and what it may use."""

    repositories: int = 10_000
    turns: int = 1_000
    accounts: int = 100
    skew: float = 1.0
    """How unlike the accounts are: with 1 the largest of 100 has a fifth of all repositories, with 0 all are equal."""
    account_turns: int = 0
    """The most turns at once of one account, which its settings say; 0: no limit."""
    repo_turns: int = 4
    machines: int = int(figures.MACHINES.value)
    creations: float = figures.CREATIONS.value
    replicas: int = 20
    database_cores: int = int(figures.DATABASE_CORES.value)
    load: float = figures.LOAD.value
    """What people ask for in the busiest hour, of `turns`."""
    seed: int = 1


@dataclass(frozen=True)
class Asked:
    """A turn that somebody asks for; admission looks at the first four fields."""

    thread_id: str
    repo_id: RepoId
    installation_id: InstallationId
    created_at: float
    work_seconds: float
    checked: bool


def busy(at: float) -> float:
    """The share of the busiest hour's demand at this time."""
    return figures.BUSY[int(at // HOUR) % 24] / 100


def sizes(plan: Plan) -> list[int]:
    """Give each account its repositories. With a skew of 1 the second has half as many as the first, and so on."""
    weights = [1 / rank**plan.skew for rank in range(1, plan.accounts + 1)]
    bounds = [round(plan.repositories * part / sum(weights)) for part in accumulate(weights)]
    return [end - begin for begin, end in zip([0, *bounds], bounds, strict=False)]


def turn_seconds() -> float:
    """The mean time that a turn holds its place."""
    work = figures.WORK_MEDIAN.value * math.exp(figures.WORK_SPREAD.value**2 / 2)
    return figures.FURNISH.value + work + figures.CHECKED.value * figures.CHECK.value


def asked(plan: Plan) -> Iterator[Asked]:
    """Everything that is asked for in a day, in order."""
    chance, at, number = random.Random(plan.seed), 0.0, 0
    counts = sizes(plan)
    first = [0, *accumulate(counts)]
    each_second = plan.load * plan.turns / turn_seconds()
    while (at := at + chance.expovariate(each_second)) < DAY:
        if chance.random() >= busy(at):
            continue
        number += 1
        [account] = chance.choices(range(plan.accounts), counts)
        repo = first[account] + chance.randrange(counts[account])
        work = min(HOUR, chance.lognormvariate(math.log(figures.WORK_MEDIAN.value), figures.WORK_SPREAD.value))
        checked = chance.random() < figures.CHECKED.value
        yield Asked(f"thread {number}", RepoId(repo), InstallationId(account), at, work, checked)
