"""`python -m tests.bench.spine`: how long the spine takes, printed; the goals stand beside the figures."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from datetime import datetime
from functools import partial
from pathlib import Path

import httpx

from bot.simulation.anthropic import SimulatedAnthropic
from bot.store import conversation, sessions
from bot.store.base import Store
from tests.crash.process import ALONE, Service
from tests.world import World

RUNS = 8


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with World.running(Path(folder)) as world:
            await startup(world)
            await turns(world)
            await latency(world)


async def startup(world: World) -> None:
    began = time.monotonic()
    service = await Service.start(world, module=ALONE)
    assert service is not None
    async with httpx.AsyncClient() as client:
        await client.get(f"{service.url}/healthz")
    say("process start to everything running", [time.monotonic() - began], None)
    await asyncio.sleep(2)
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    print(f"{'idle memory':44} {int(resident.split()[1]) / 1024:8.0f} MB")
    await service.stop()


async def turns(world: World) -> None:
    comment, model, final = [], [], []
    async with world.bot():
        for _ in range(RUNS):
            issue = world.github.open_issue(world.repo, title="Bench", body="", by="alice")
            asked, began = len(world.model.requests), time.monotonic()
            world.say("/claude fix this", on=issue)
            await world.github.changed(partial(world.replies, issue), 30)
            comment.append(time.monotonic() - began)
            await world.model.until(partial(_asked_more, asked), 30)
            model.append(time.monotonic() - began)
            await world.outcome(on=issue)
            final.append(time.monotonic() - began)
    say("webhook to live comment posted", comment, 0.5)
    say("webhook to first request at the model", model, 2.5)
    say("webhook to final comment (8 model answers)", final, None)


def _asked_more(before: int, model: SimulatedAnthropic) -> bool:
    return len(model.requests) > before


async def latency(world: World) -> None:
    """From the time that the agent's client put on a line to the time at which its event was stored."""
    store = await Store.open_reader(world.database)
    late = []
    for row in await sessions.listing(store):
        for turn in await sessions.turns_of(store, row.id):
            for event in await conversation.events_of_turn(store, turn.key, 0, 10_000):
                stamp = json.loads(event.line).get("timestamp")
                if stamp:
                    late.append(event.at - datetime.fromisoformat(stamp).timestamp())
    await store.close()
    say(f"line inside to event in the store (n={len(late)})", late, 0.3)


def say(what: str, seconds: list[float], goal: float | None) -> None:
    seconds = sorted(seconds)
    p50, p95 = statistics.median(seconds), seconds[min(len(seconds) - 1, int(len(seconds) * 0.95))]
    beside = f"   goal {goal * 1000:.0f} ms" if goal else ""
    print(f"{what:44} p50 {p50 * 1000:6.0f} ms   p95 {p95 * 1000:6.0f} ms{beside}")


if __name__ == "__main__":
    asyncio.run(main())
