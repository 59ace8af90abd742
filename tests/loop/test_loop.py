"""The worst inputs that are known, through every door of the running service: its loop is never blocked for long, and
nobody else notices. `python -m tests.loop` measures all of them."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loop.attacks import every
from tests.loop.field import Field, Found
from tests.loop.lag import LoopWatch

CALLBACK_MS = 50.0
"""Of computing: what a callback waits for on a busy machine is not its own."""
HEALTH_SECONDS = 1.0
STATUS_SECONDS = 10.0

ONE, FIVE, SIX = (pytest.mark.review(f"security-{n}") for n in (1, 5, 6))
WORST = [
    pytest.param("quotes of 64 KB by a writer", marks=ONE),
    pytest.param("fences of 15 KB by an outsider", marks=ONE),
    pytest.param("last words of 24,000 characters: quotes", marks=ONE),
    pytest.param("11 MB of tiny objects from eight threads, refused", marks=FIVE),
    pytest.param("trees in trees, ten deep", marks=SIX),
    "lines of 10 MB",
    "deep JSON in lines",
    "5,000 calls with large edits, and their page",
    "25 MB of tiny values",
    "100 pages of comments of 65,536 characters",
    "forgehand.yml nested deep",
    "a pull request template that is hard to read",
]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", WORST)
async def test_no_input_blocks_the_loop_and_nobody_else_waits(tmp_path: Path, name: str) -> None:
    async with Field.open(tmp_path) as field:
        found = await field.meet(name, every()[name].attack)
    assert found.lag.held_ms < CALLBACK_MS, _seen(found)
    assert found.health.slowest < HEALTH_SECONDS and not found.health.refused, _seen(found)
    assert found.slowest_status < STATUS_SECONDS, _seen(found)


def _seen(found: Found) -> str:
    worst = [f"{one.cpu_ms:.0f} ms: {one.name}: {' > '.join(one.stack[-5:])}" for one in found.lag.worst[:5]]
    return "\n".join([f"/healthz {found.health.slowest:.2f} s; status {found.slowest_status:.2f} s", *worst])


@pytest.fixture
def watch() -> Iterator[LoopWatch]:
    one = LoopWatch()
    with one.installed():
        yield one


async def test_the_guard_sees_a_callback_that_computes_and_where(watch: LoopWatch) -> None:
    await asyncio.sleep(0)
    deep = "[" * 200 + "]" * 200
    ends = time.thread_time() + 0.1
    while time.thread_time() < ends:
        json.loads(deep)
    await asyncio.sleep(0)
    found = watch.take()
    assert 80 < found.held_ms < 2_000, found
    assert any("test_the_guard_sees" in line for line in found.worst[0].stack), found.worst[0]
    assert watch.take().worst == []


async def test_the_guard_does_not_mistake_waiting_for_computing(watch: LoopWatch) -> None:
    """As on a machine that others use."""
    await asyncio.sleep(0)
    threading.Event().wait(0.1)
    await asyncio.sleep(0)
    assert watch.take().worst == []
