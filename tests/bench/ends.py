"""`python -m tests.bench.ends N`: how soon people see the end of a session, with N real ones at work at once.

All of it is real but GitHub and the model: the service, its steps, the agent's program in its box. The agents wait for
the model, which lets them go one after the other; what is measured is the time from a turn's end in the store to its
final comment at GitHub, and from the model's last word.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from bot.simulation.anthropic import ModelRequest, Say, Script
from bot.simulation.github.threads import Issue
from tests.bench.scheduler import share
from tests.world import World

APART_SECONDS = 3.0
PATIENCE_SECONDS = 600.0


def _held(request: ModelRequest) -> Say:
    found = re.search(r"on issue #(\d+)", request.prompt)
    return Say("It is fine.", hold=f"issue {found[1] if found else 0}")


async def measure(world: World, count: int) -> list[tuple[float, float]]:
    """Of each: seconds since its end in the store, and since the model's last word."""
    issues = [world.github.open_issue(world.repo, title=f"Look at {n}", body="x", by="alice") for n in range(count)]
    world.model.default(Script([], after=_held))
    for issue in issues:
        world.say("/claude look", on=issue)
    for issue in issues:
        await world.model.reached(f"issue {issue.number}", timeout=PATIENCE_SECONDS)
    ending = []
    for issue in issues:
        ending.append(asyncio.create_task(_end(world, issue)))
        await asyncio.sleep(APART_SECONDS)
    return await asyncio.gather(*ending)


async def _end(world: World, issue: Issue) -> tuple[float, float]:
    began = time.time()
    world.model.release(f"issue {issue.number}")
    await world.outcome(on=issue, timeout=PATIENCE_SECONDS)
    now = time.time()
    with closing(sqlite3.connect(world.root / "data" / "state.db", timeout=30)) as db:
        [(ended,)] = db.execute("SELECT finished_at FROM turns WHERE number = ?", (issue.number,))
    return now - float(ended), now - began


async def main(counts: Sequence[int]) -> None:
    print("sessions  since its end p50   p95    max   since the model's last word p50   p95")
    for count in counts:
        limits = {"FORGEHAND_MAX_SESSIONS": str(count), "FORGEHAND_REPO_SESSIONS": str(count)}
        with tempfile.TemporaryDirectory() as folder:
            async with World.running(Path(folder), **limits) as world, world.bot():
                found = await measure(world, count)
        ends, words = [one for one, _ in found], [one for _, one in found]
        print(
            f"{count:8}          {share(ends, 0.5):7.2f} s {share(ends, 0.95):5.2f} s {max(ends):5.2f} s"
            f"                     {share(words, 0.5):7.2f} s {share(words, 0.95):5.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    asyncio.run(main([int(one) for one in sys.argv[1:]] or [1, 10]))
