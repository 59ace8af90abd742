"""`python -m tests.bench.api [REQUESTS]`: requests a second and their times for GET and POST of the API.

Each POST asks for words to an agent at work, so that it passes the intake without starting a turn."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from bot.simulation.anthropic import Call, Say, Script, Wait
from bot.web.api import door
from tests.api.tokens import api_client
from tests.world import World

AT_ONCE = 8
FAST = 1_000_000


async def main(count: int) -> None:
    door.PER_MINUTE = FAST
    with tempfile.TemporaryDirectory() as folder:
        async with World.running(Path(folder)) as world:
            world.model.default(Script([Call("Bash", {"command": "true"}, "I begin."), Wait("go"), Say("Done.")]))
            async with world.bot() as service, api_client(world, service.url) as program:
                session = (await program.start(world.issue.number, prompt="wait")).json()["session"]
                await world.model.reached("go", timeout=60)
                await _measure("GET /sessions/{id}", count, lambda: program.get(f"/sessions/{session}"))
                words = {"text": "mind the tests"}
                await _measure("POST …/messages", count, lambda: program.post(f"/sessions/{session}/messages", words))
                await program.post(f"/sessions/{session}/stop")
                await world.outcome()


async def _measure(name: str, count: int, send: Callable[[], Awaitable[httpx.Response]]) -> None:
    times: list[float] = []

    async def some(many: int) -> None:
        for _ in range(many):
            began = time.perf_counter()
            answer = await send()
            times.append(time.perf_counter() - began)
            assert answer.status_code == 200, answer.text

    await some(5)
    times.clear()
    began = time.perf_counter()
    await asyncio.gather(*(some(count // AT_ONCE) for _ in range(AT_ONCE)))
    seconds = time.perf_counter() - began
    p99 = statistics.quantiles(times, n=100)[98]
    print(
        f"{name}: {len(times) / seconds:.0f} requests a second, {AT_ONCE} at once; "
        f"median {statistics.median(times) * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms"
    )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 400))
