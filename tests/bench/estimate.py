"""`python -m tests.bench estimate [--json] [--postgres]`: how often the upper figures of estimates hold, and what they
cost the store.

Generated histories are replayed, each turn judged by the turns before it and, beside that, by all others (leave one
out). Each history is one repository and kind. Real spending looks like a log-normal: many small turns, a long tail."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bot import estimates
from bot.estimates import EstimateScope, TurnFigures
from bot.kinds.shape import WorkEstimate
from bot.models import InstallationId, Repo, RepoId
from bot.store import turn_figures
from bot.store.base import Address, Store
from bot.store.rows import insert
from tests.world.postgres import PostgresServer

SEED = 15
HISTORIES = 200
YEAR = 100_000
DAY = 86_400.0
Draw = Callable[[random.Random, int, int], TurnFigures]


def lognormal(spread: float) -> Draw:
    def draw(source: random.Random, at: int, count: int) -> TurnFigures:
        size = source.gauss(0.0, spread)  # large work costs more and takes longer, but not in step
        return TurnFigures(0.6 * math.exp(size + source.gauss(0, 0.3)), 300 * math.exp(size + source.gauss(0, 0.3)))

    return draw


def drifting(factor: float) -> Draw:
    """Costs grow, or fall, by this factor from the first turn to the last."""
    plain = lognormal(0.8)

    def draw(source: random.Random, at: int, count: int) -> TurnFigures:
        usd, seconds = plain(source, at, count)
        grown = factor ** (at / count)
        return TurnFigures(usd * grown, seconds * grown)

    return draw


def stepping(source: random.Random, at: int, count: int) -> TurnFigures:
    """Half-way, another model costs three times as much."""
    usd, seconds = lognormal(0.8)(source, at, count)
    return TurnFigures(usd * (3 if at > count / 2 else 1), seconds)


def two_sizes(source: random.Random, at: int, count: int) -> TurnFigures:
    """One turn in five is large work."""
    usd, seconds = lognormal(0.4)(source, at, count)
    large = 8 if source.random() < 0.2 else 1
    return TurnFigures(usd * large, seconds * large)


CASES: dict[str, tuple[Draw, int]] = {
    "few turns (12), spread 0.8": (lognormal(0.8), 12),
    "100 turns, spread 0.5": (lognormal(0.5), 100),
    "100 turns, spread 0.8": (lognormal(0.8), 100),
    "100 turns, spread 1.3": (lognormal(1.3), 100),
    "200 turns, costs double": (drifting(2.0), 200),
    "200 turns, costs halve": (drifting(0.5), 200),
    "200 turns, a dearer model": (stepping, 200),
    "100 turns of two sizes": (two_sizes, 100),
}


def history(draw: Draw, count: int, source: random.Random) -> list[TurnFigures]:
    return [draw(source, at, count) for at in range(count)]


def by_the_past(known: Sequence[TurnFigures]) -> Iterable[tuple[WorkEstimate | None, TurnFigures]]:
    for at, actual in enumerate(known):
        yield estimates.of(known[:at][::-1], "run", EstimateScope.REPOSITORY), actual


def leaving_one_out(known: Sequence[TurnFigures]) -> Iterable[tuple[WorkEstimate | None, TurnFigures]]:
    for at, actual in enumerate(known):
        newest = [*known[:at], *known[at + 1 :]][::-1]
        yield estimates.of(newest, "run", EstimateScope.REPOSITORY), actual


def replayed(name: str) -> dict[str, Any]:
    draw, count = CASES[name]
    source = random.Random(SEED)
    histories = [history(draw, count, source) for _ in range(HISTORIES)]
    row: dict[str, Any] = {"history": name}
    for how, replay in (("past", by_the_past), ("left_out", leaving_one_out)):
        judged = [(given, actual) for known in histories for given, actual in replay(known) if given is not None]
        held = [estimates.held(given, actual) for given, actual in judged]
        row[how] = {
            "turns": len(judged),
            "held_usd": sum(usd for usd, _ in held) / len(held),
            "held_seconds": sum(seconds for _, seconds in held) / len(held),
            "below_likely": sum(actual.usd <= given.likely_usd for given, actual in judged) / len(judged),
            "most_by_likely": statistics.median(given.most_usd / given.likely_usd for given, _ in judged),
        }
    return row


async def timed(address: Address) -> dict[str, float]:
    """Measure what an estimate costs the store after a year, at its dearest: nothing is known of the repository."""
    store, source = await Store.open(address), random.Random(SEED)
    now = time.time()
    rows = [_row(n, now, source) for n in range(YEAR)]
    for at in range(0, YEAR, 5_000):
        part = rows[at : at + 5_000]
        await store.write(lambda db, part=part: insert(db, "turn_figures", part))  # type: ignore[misc]
    known, unknown = _place(1, private=True), _place(10_001, private=True)
    found = {
        "own_ms": await _milliseconds(lambda: turn_figures.estimate(store, known, InstallationId(1), "run")),
        "elsewhere_ms": await _milliseconds(lambda: turn_figures.estimate(store, unknown, InstallationId(99), "run")),
        "spend_page_ms": await _milliseconds(lambda: turn_figures.held(store, now - 30 * DAY, InstallationId(1))),
        "spend_ms": await _milliseconds(lambda: turn_figures.held(store, now - 30 * DAY)),
    }
    await store.close()
    return found


def _row(n: int, now: float, source: random.Random) -> dict[str, Any]:
    usd, seconds = lognormal(0.8)(source, n, YEAR)
    return {
        "session_id": f"s{n:07}",
        "turn": 1,
        "repo_id": 1 + n % 200,
        "installation_id": 1 + n % 20,
        "private": n % 2,
        "kind": source.choice(("run", "run", "run", "review", "ask", "plan")),
        "usd": usd,
        "seconds": seconds,
        "at": now - 365 * DAY * (1 - n / YEAR),
        "held_usd": int(source.random() < 0.9),
        "held_seconds": int(source.random() < 0.9),
    }


def _place(number: int, *, private: bool) -> Repo:
    return Repo(RepoId(number), "octo", f"r{number}", private, "main")


async def _milliseconds(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(50):
        began = time.perf_counter()
        await work()
        times.append((time.perf_counter() - began) * 1000)
    return round(statistics.median(times), 2)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench estimate")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--postgres", action="store_true", help="time PostgreSQL too")
    given = parser.parse_args()
    rows = [replayed(name) for name in CASES]
    with tempfile.TemporaryDirectory() as folder:
        times = {"sqlite": asyncio.run(timed(Path(folder) / "state.db"))}
    if given.postgres:
        with PostgresServer.started() as server:
            times["postgres"] = asyncio.run(timed(server.fresh()))
    if given.json:
        print(json.dumps({"histories": rows, "milliseconds": times}, indent=1))
        return
    print(f"{'history':30} {'turns':>7} {'price held':>11} {'time held':>10} {'left out':>9} {'most/likely':>12}")
    for row in rows:
        past, left = row["past"], row["left_out"]
        figures = f"{past['turns']:>7} {past['held_usd']:>11.1%} {past['held_seconds']:>10.1%} {left['held_usd']:>9.1%}"
        print(f"{row['history']:30} {figures} {past['most_by_likely']:>12.1f}")
    for name, spent in times.items():
        print(f"{name}, {YEAR:,} turns:", ", ".join(f"{what} {ms}" for what, ms in spent.items()))


if __name__ == "__main__":
    main()
