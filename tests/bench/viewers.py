"""`python -m tests.bench.viewers [VIEWERS]`: what the bot takes while many people watch one session live."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from bot.simulation.anthropic import Call, Script, Slow, Wait
from bot.store.base import Store
from bot.store.rows import many
from tests.bench.streams import _resident_mb, cpu_seconds
from tests.crash.process import ALONE, Service
from tests.world import World
from tests.world.visitor import visitor

EACH = 40
"""Streams that one person may have open."""
MEASURED_SECONDS = 20.0
HEALTH_EVERY = 0.05


async def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with World.running(Path(folder)) as world:
            world.repo.private = False
            steps: list[Call | Wait | Slow] = [Wait("go"), Slow(0.05, 0.0)]
            steps += [Call("Bash", {"command": f"seq {n}", "description": "Count"}, f"Words {n}.") for n in range(400)]
            world.model.default(Script(steps))
            service = await Service.start(world, module=ALONE)
            assert service is not None
            try:
                world.say("/claude count")
                await world.model.reached("go", timeout=60)
                print(f"without viewers: {await _health(service.url, 3.0)}")
                await _measure(world, service, count)
            finally:
                await service.kill()


async def _measure(world: World, service: Service, count: int) -> None:
    session = str(world.states()[0]["session"])
    cookies = await _signed_in(world, service.url, -(-count // EACH))
    heard: dict[int, list[float]] = {}
    began = time.monotonic()
    tasks = [
        asyncio.create_task(_watch(service.url, session, cookies[number // EACH], heard)) for number in range(count)
    ]
    async with asyncio.timeout(60):
        while sum(map(len, heard.values())) < count:
            await asyncio.sleep(0.1)
    print(f"{count} viewers have the session on their screens after {time.monotonic() - began:.1f} s")
    heard.clear()
    world.model.release("go")
    cpu, began = cpu_seconds(service.process.pid), time.monotonic()
    health = await _health(service.url, MEASURED_SECONDS)
    seconds = time.monotonic() - began
    used = cpu_seconds(service.process.pid) - cpu
    rows = await _rows(world, session)
    lags = sorted(at - rows[seq] for seq, times in heard.items() if seq in rows for at in times)
    print(f"with {count} viewers: {health}")
    print(f"{len(heard)} batches of lines to each, {sum(map(len, heard.values())) / seconds:.0f} messages a second")
    if lags:
        print(
            f"line in the store to viewer: p50 {statistics.median(lags):.2f} s, p95 {lags[int(len(lags) * 0.95)]:.2f} s"
        )
    print(f"bot's CPU {100 * used / seconds:.0f} % of one core, memory {_resident_mb(service):.0f} MB")
    lost = sum(task.done() for task in tasks)
    print(f"{lost} streams were lost; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _signed_in(world: World, url: str, people: int) -> list[str]:
    cookies = []
    for number in range(people):
        world.github.user(f"viewer-{number}")
        async with visitor(world, url, f"viewer-{number}") as one:
            cookies.append(one.client.cookies["forgehand"])
    return cookies


async def _watch(url: str, session: str, cookie: str, heard: dict[int, list[float]]) -> None:
    """Notes when each batch of lines came, by its id."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=1 << 24)
    head = f"GET /sessions/{session}/events HTTP/1.1\r\nHost: {where.netloc}\r\nCookie: forgehand={cookie}\r\n\r\n"
    writer.write(head.encode())
    seq = 0
    try:
        while line := await reader.readline():
            if line.startswith(b"id: "):
                seq = int(line[4:])
            elif line.startswith(b"event: overview") and not heard.get(0):
                heard.setdefault(0, [])
            elif line.startswith(b"data: ") and seq:
                heard.setdefault(seq, []).append(time.time())
                seq = 0
    finally:
        writer.close()


async def _health(url: str, seconds: float) -> str:
    """How long the smallest of questions takes meanwhile."""
    took: list[float] = []
    ends = time.monotonic() + seconds
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        while time.monotonic() < ends:
            began = time.monotonic()
            assert (await client.get("/healthz")).status_code == 200
            took.append(time.monotonic() - began)
            await asyncio.sleep(HEALTH_EVERY)
    took.sort()
    p95 = took[int(len(took) * 0.95)]
    return f"/healthz p50 {1e3 * statistics.median(took):.0f} ms, p95 {1e3 * p95:.0f} ms, most {1e3 * took[-1]:.0f} ms"


async def _rows(world: World, session: str) -> dict[int, float]:
    store = await Store.open_reader(world.database)
    try:
        sql = "SELECT seq, at FROM events WHERE session_id = :id"
        return {row["seq"]: row["at"] for row in await store.read(lambda db: many(db, sql, id=session))}
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
