"""`kill -9` after every committed transaction, then a restart: the same end as without."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from bot.simulation.github.state import Delivery
from bot.store import events, sessions
from bot.store.base import Store
from tests.crash.process import Service
from tests.world import World

EVERY = os.environ.get("FORGEHAND_TESTS") == "all"
SLICE = 7
"""In CI one point in so many, and another set of them each time the number of points changes."""
MOST_POINTS = 400


async def golden(world: World) -> int:
    """One run without a crash; how many transactions it takes."""
    service = await Service.start(world)
    assert service is not None
    world.say("/claude fix this")
    assert await world.outcome() == "pull_request"
    await world.github.idle()
    return await service.stop()


async def crashed(world: World, point: int) -> None:
    """One run that dies at the point, then is started again until it ends."""
    service = await Service.start(world, kill_at=point)
    if service is not None:
        world.say("/claude fix this")
        await _ends_or_dies(world, service)
        await service.kill()
    again = await Service.start(world)
    assert again is not None
    if service is None:  # it died while starting, before anybody knew its address
        world.say("/claude fix this")
    _redeliver_what_was_not_taken(world)
    assert await world.outcome() == "pull_request", world.replies()[0].body
    await again.stop()


async def _ends_or_dies(world: World, service: Service) -> None:
    dead = asyncio.create_task(service.died())
    done = asyncio.create_task(world.outcome())
    await asyncio.wait({dead, done}, return_when=asyncio.FIRST_COMPLETED)
    for task in (dead, done):
        task.cancel()
    await asyncio.gather(dead, done, return_exceptions=True)


def _redeliver_what_was_not_taken(world: World) -> None:
    """What GitHub's own log offers: a delivery that was not answered with 2xx may be sent again."""
    answered = {one.guid for one in world.app.deliveries if _taken(one)}
    for guid in {one.guid for one in world.app.deliveries} - answered:
        world.github.redeliver(guid)


def _taken(delivery: Delivery) -> bool:
    return 200 <= delivery.status_code < 300


async def whole(world: World) -> None:
    """The invariants: one session, one comment, one branch, one pull request, each line of output once."""
    assert len(world.replies()) == 1
    assert len(world.pulls()) == 1
    assert world.repo.branches().keys() == {"main", world.pulls()[0].head}
    assert [reaction.content for reaction in world.issue.comments[0].reactions] == ["eyes"]
    assert b"max(0.0" in (world.repo.file(world.pulls()[0].head, "shop.py") or b"")
    store = await Store.open_reader(world.root / "data" / "state.db")
    try:
        [row] = await sessions.listing(store)
        [turn] = await sessions.turns_of(store, row.id)
        lines = [one.line for one in await events.of_turn(store, turn.key, 0, 10_000)]
        assert len(lines) == len(set(lines)), "a line was stored twice"
        assert sum('"type":"result"' in line for line in lines) == 1
    finally:
        await store.close()


@pytest.mark.acceptance("F01")
@pytest.mark.timeout(3600 if EVERY else 600)
async def test_killed_after_every_transaction_it_ends_as_if_nothing_had_happened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with World.running(tmp_path / "golden") as world:
        points = await golden(world)
        await whole(world)
    assert 20 < points < MOST_POINTS
    chosen = [point for point in range(1, points + 1) if EVERY or point % SLICE == points % SLICE]
    with capsys.disabled():
        print(f"\nkill points: {points}, tried here: {len(chosen)}")
    for point in chosen:
        async with World.running(tmp_path / f"at-{point}") as world:
            try:
                await crashed(world, point)
                await whole(world)
            except Exception as error:
                log = (world.root / "service.log").read_text()[-3000:]
                raise AssertionError(f"at kill point {point} of {points}: {error}\n{log}") from error
