"""`python -m tests.capacity.one_turn`: what one turn asks of PostgreSQL, GitHub, the gateway and the processor.

The service is a process of its own, and everything around it is on loopback. Relays count what passes to the database
and to the model. Three turns differ in one thing each, so that their differences say what a turn, a request to the
model and a second of work cost. `tests/capacity/measured.py` holds the figures that the simulation uses.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import psycopg

from bot.simulation.anthropic import Call, Say, Script, Wait
from tests.capacity.counting import Counting, PostgresCounting
from tests.crash.process import ALONE, Service
from tests.world import World
from tests.world.postgres import PostgresServer

FEW, MANY = 5, 45
WAITED_SECONDS = 40.0
IDLE_SECONDS = 20.0
QUIET_SECONDS = 3.0
IGNORED = 100
TICKS = os.sysconf("SC_CLK_TCK")
LOOK = Call("Bash", {"command": "head -c 2000 /dev/zero | tr '\\0' x; echo", "description": "Look"})
CHANGE = Call("Bash", {"command": "echo '# more' >> shop.py", "description": "Change"})


@dataclass(frozen=True)
class Use:
    """What was used since the start, or between two looks."""

    seconds: float
    statements: float
    writes: float
    """Writing transactions, which run one after the other."""
    database_bytes: float
    log_bytes: float
    """What PostgreSQL wrote to its write-ahead log."""
    requests: float
    """Requests to GitHub's API as the installation, which it counts."""
    content: float
    """New comments, pull requests, reviews."""
    edits: float
    model_requests: float
    gateway_up: float
    gateway_down: float
    cpu_seconds: float
    """Of the service's process, without its children."""

    def __sub__(self, other: Use) -> Use:
        return Use(*(getattr(self, one.name) - getattr(other, one.name) for one in fields(self)))

    def times(self, factor: float) -> Use:
        return Use(*(getattr(self, one.name) * factor for one in fields(self)))


@dataclass
class Rig:
    world: World
    service: Service
    database: PostgresCounting
    model: Counting
    server: PostgresServer

    def used(self) -> Use:
        with psycopg.connect(self.server.url()) as connection:
            [[log]] = connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchall()
        calls = [one for one in self.world.github.calls if one.credential == "installation"]
        api = Counter(f"{one.method} {_kind(one.path)}" for one in calls if ".git/" not in one.path)
        return Use(
            seconds=time.monotonic(),
            statements=self.database.statements,
            writes=self.database.writes,
            database_bytes=self.database.there + self.database.back,
            log_bytes=float(log),
            requests=sum(api.values()),
            content=api["POST comments"] + api["POST pulls"] + api["POST reviews"],
            edits=api["PATCH comments"],
            model_requests=len(self.world.model.requests),
            gateway_up=self.model.there,
            gateway_down=self.model.back,
            cpu_seconds=_cpu_seconds(self.service.process.pid),
        )

    async def turn(self, script: Script, seconds: float = 0.0) -> Use:
        """Run a turn on a new issue; while it waits, if it does, let so many seconds pass."""
        self.world.model.default(script)
        issue = self.world.github.open_issue(self.world.repo, title="Measure", body="x", by="alice")
        await asyncio.sleep(QUIET_SECONDS)
        before = self.used()
        self.world.say("/claude fix this", on=issue)
        if seconds:
            await self.world.model.reached("on", timeout=60)
            await asyncio.sleep(seconds)
            self.world.model.release("on")
        assert await self.world.outcome(on=issue) == "pull_request"
        await asyncio.sleep(QUIET_SECONDS)
        return self.used() - before


def _kind(path: str) -> str:
    """The collection that a path belongs to: `comments` for `/repos/o/r/issues/comments/3`."""
    return [part for part in path.split("/") if part and not part.isdigit()][-1]


def _cpu_seconds(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / TICKS


@asynccontextmanager
async def rig(folder: Path) -> AsyncIterator[Rig]:
    with PostgresServer.started() as server:
        async with (
            PostgresCounting.running(server.port) as database,
            World.running(folder) as world,
            Counting.running(int(world.model.url.rpartition(":")[2])) as model,
        ):
            address = server.fresh().reveal().replace(str(server.port), str(database.port))
            world.environment["FORGEHAND_DATABASE_URL"] = address
            world.environment["ANTHROPIC_BASE_URL"] = f"http://127.0.0.1:{model.port}"
            service = await Service.start(world, module=ALONE)
            assert service is not None
            try:
                yield Rig(world, service, database, model, server)
            finally:
                await service.kill()


def script(calls: int, *, waits: bool = False) -> Script:
    begun = [CHANGE, *(LOOK for _ in range(calls - 2))]
    return Script([*begun, *([Wait("on")] if waits else []), Say("Done.")])


async def measure(folder: Path) -> dict[str, Use]:
    """What each thing costs, by name, without what the service does anyway."""
    async with rig(folder) as running:
        await running.turn(script(FEW))  # the first turn of a service also warms its caches
        before = running.used()
        await asyncio.sleep(IDLE_SECONDS)
        idle = (running.used() - before).times(1 / IDLE_SECONDS)
        few, many = await running.turn(script(FEW)), await running.turn(script(MANY))
        long = await running.turn(script(FEW, waits=True), WAITED_SECONDS)
        ignored = await _ignored(running)
    few_seconds, many_seconds = few.seconds, many.seconds
    few, many, long = (one - idle.times(one.seconds) for one in (few, many, long))
    second = (long - few).times(1 / WAITED_SECONDS)
    request = (many - few - second.times(many_seconds - few_seconds)).times(1 / (MANY - FEW))
    fixed = few - second.times(few_seconds - 2 * QUIET_SECONDS) - request.times(FEW)
    return {"turn": fixed, "request": request, "second": second, "idle_second": idle, "delivery": ignored}


async def _ignored(running: Rig) -> Use:
    issue = running.world.github.open_issue(running.world.repo, title="Talk", body="x", by="alice")
    await asyncio.sleep(QUIET_SECONDS)
    before = running.used()
    for number in range(IGNORED):
        running.world.say(f"We could meet on day {number}.", on=issue)
    await asyncio.sleep(2 * QUIET_SECONDS)
    return (running.used() - before).times(1 / IGNORED)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(Path(folder)))
    print(f"{'':12}" + "".join(f"{one.name:>15}" for one in fields(Use)))
    for name, use in found.items():
        print(f"{name:12}" + "".join(f"{getattr(use, one.name):15.4g}" for one in fields(Use)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
