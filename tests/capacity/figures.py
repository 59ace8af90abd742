"""The figures that the simulation stands on, each with its source: measured here, documented elsewhere, or assumed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Source(StrEnum):
    MEASURED = "measured"
    DOCUMENTED = "documented"
    ASSUMED = "assumed"


@dataclass(frozen=True)
class Figure:
    value: float
    unit: str
    source: Source
    where: str
    """Where it was measured or read, or why it is a fair guess."""


@dataclass(frozen=True)
class Cost:
    """What one thing asks of the parts that all replicas share, and of a replica's processor."""

    statements: float
    writes: float
    """Writing transactions before those that wait are committed together."""
    log_bytes: float
    cpu_seconds: float


TURN = Cost(1240, 71, 97_000, 0.27)
REQUEST = Cost(65, 3.5, 5_200, 0.010)
SECOND = Cost(44, 0.7, 530, 0.015)
IDLE_SECOND = Cost(8.2, 0.2, 67, 0.0105)
DELIVERY = Cost(25, 2.0, 5_500, 0.0035)
"""`python -m tests.capacity.one_turn` measures these five; the idle second is from `python -m tests.bench replicas`."""


def _measured(value: float, unit: str, where: str) -> Figure:
    return Figure(value, unit, Source.MEASURED, where)


def _documented(value: float, unit: str, where: str) -> Figure:
    return Figure(value, unit, Source.DOCUMENTED, where)


def _assumed(value: float, unit: str, where: str) -> Figure:
    return Figure(value, unit, Source.ASSUMED, where)


ONE_TURN = "python -m tests.capacity.one_turn"
DEVELOPMENT = "a busy machine with two cores, PostgreSQL 15 on it"

API_REQUESTS = _measured(24, "requests a turn", ONE_TURN)
CONTENT = _measured(2, "new comments and pull requests a turn", ONE_TURN)
STATEMENTS_A_CORE = _measured(15_000, "statements a second", f"pgbench -S -M prepared: 30,800 on {DEVELOPMENT}")
WRITES_A_SECOND = _measured(
    1_400, "transactions a second", f"ten writers at a time through the store, on {DEVELOPMENT}"
)
ADMISSION = _measured(1.6e-7, "seconds per waiting turn, squared", "one look of `choose` with 1,000 and 3,000 waiting")
REPLICA_CORES = _measured(1.0, "cores", "one process runs Python on one core")

CONTENT_AN_HOUR = _documented(500, "an hour and installation", "GitHub's secondary limits; also 80 a minute")
REQUESTS_AN_HOUR = _documented(5_000, "an hour and installation", "GitHub's REST limits, the least")
MORE_A_REPOSITORY = _documented(50, "an hour for each repository past 20", "GitHub's REST limits")
MOST_REQUESTS = _documented(12_500, "an hour and installation", "GitHub's REST limits; 15,000 on Enterprise Cloud")
MACHINES = _documented(1_100, "sandboxes", "E2B's plan Pro with all add-ons: 100 without")
CREATIONS = _documented(5, "sandboxes a second", "E2B's plan Pro")
MACHINE_HOUR = _documented(0.166, "dollars an hour", "E2B's prices for 2 vCPU and 4 GiB")

WORK_MEDIAN = _assumed(600, "seconds", "the agent's work in a turn; half take longer")
WORK_SPREAD = _assumed(0.9, "of a log-normal", "a mean of 14 minutes; one turn in 40 reaches the hour")
FURNISH = _assumed(20, "seconds", "E2B's sandbox with a snapshot of the repository")
CHECKED = _assumed(0.4, "of turns", "repositories that declare checks")
CHECK = _assumed(180, "seconds", "a run of the declared checks")
REQUEST_EVERY = _assumed(12, "seconds of work a request", "an answer of 8 seconds, a tool of 4")
CONTEXT_BYTES = _assumed(250_000, "bytes a request", "60,000 tokens; the first request has 24 KB (measured)")
ANSWER_BYTES = _assumed(20_000, "bytes an answer", "400 tokens, each in an event")
DELIVERIES = _assumed(100, "a day and repository", "pushes, checks and comments of a team")
WANTED_EDITS = _assumed(6, "a minute and turn", "an agent says something new every 10 seconds")
LOAD = _assumed(0.9, "of the turns at once", "what people ask for in the busiest hour")
NETWORK = _assumed(1_000, "Mbit/s a replica", "a usual machine in a cloud; the gateway sends as much as it receives")
DATABASE_CORES = _assumed(8, "cores", "a usual size of a managed PostgreSQL")
FIGURES = {name: one for name, one in globals().items() if isinstance(one, Figure)}

BUSY = (1, 1, 1, 1, 1, 2, 8, 25, 60, 85, 95, 100, 80, 85, 100, 95, 85, 60, 35, 20, 12, 8, 4, 2)
"""How much is asked for in each hour of the day, in hundredths of the busiest: assumed."""
