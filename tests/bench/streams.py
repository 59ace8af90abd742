"""`python -m tests.bench.streams [SESSIONS]`: what the bot takes while many sessions stream 20 lines a second each."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bot.simulation.github.threads import Issue
from bot.store.base import Store
from bot.store.rows import Row, many
from tests.crash.process import ALONE, Service
from tests.world import World
from tests.world.e2b import e2b_spine

AGENT = Path(__file__).parents[1] / "data" / "agents" / "streaming_agent.py"
PER_SECOND = 20
MEASURED_SECONDS = 30.0
START_SECONDS = 400.0


async def main(count: int) -> None:
    many_ = {
        "FORGEHAND_MAX_SESSIONS": str(count),
        "FORGEHAND_REPO_SESSIONS": str(count),
        "FORGEHAND_E2B_SANDBOXES": str(count),
    }
    with tempfile.TemporaryDirectory() as folder:
        async with e2b_spine(Path(folder), None, AGENT, **many_) as (world, _):
            service = await Service.start(world, module=ALONE)
            assert service is not None
            try:
                await _until_all_stream(world, [_asked(world, number) for number in range(count)])
                await _measure(world, service, count)
            finally:
                await service.kill()


def _asked(world: World, number: int) -> Issue:
    issue = world.github.open_issue(world.repo, title=f"Issue {number}", by="alice")
    world.say("/claude stream", on=issue)
    return issue


async def _until_all_stream(world: World, asked: list[Issue]) -> None:
    began = time.monotonic()
    async with asyncio.timeout(START_SECONDS):
        while (streaming := len(await _rows(world, "SELECT DISTINCT session_id FROM events"))) < len(asked):
            await asyncio.sleep(1)
    print(f"{streaming} sessions stream, {time.monotonic() - began:.0f} s after the first was asked for")


async def _measure(world: World, service: Service, count: int) -> None:
    cpu, began, at = cpu_seconds(service.process.pid), time.monotonic(), time.time()
    await asyncio.sleep(MEASURED_SECONDS)
    seconds = time.monotonic() - began
    used = cpu_seconds(service.process.pid) - cpu
    rows = await _rows(world, "SELECT line, at FROM events WHERE at > :at", at=at)
    late = sorted(row["at"] - said for row in rows if (said := json.loads(row["line"]).get("at")))
    print(f"{len(rows) / seconds:.0f} lines a second stored, of {count * PER_SECOND} that are said")
    print(f"bot's CPU {100 * used / seconds:.0f} % of one core, {1e6 * used / max(len(rows), 1):.0f} µs a line")
    print(f"bot's memory {_resident_mb(service):.0f} MB")
    if late:
        p95 = late[int(len(late) * 0.95)]
        print(f"line inside to event in the store: p50 {statistics.median(late):.2f} s, p95 {p95:.2f} s")
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores (stand-ins and agents included)")


async def _rows(world: World, sql: str, **values: object) -> list[Row]:
    store = await Store.open_reader(world.database)
    try:
        return await store.read(lambda db: many(db, sql, **values))
    finally:
        await store.close()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mb(service: Service) -> float:
    status = Path(f"/proc/{service.process.pid}/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
