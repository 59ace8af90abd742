"""The points of a turn at which its service is killed: which of them are tried, and a run that dies at one of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from bot.simulation.github.accounts import Delivery
from tests.crash.process import Service
from tests.slices import EVERY, ROUND
from tests.world import World


def chosen(found: int, share: int) -> list[int]:
    """In CI one point in so many, and another set of them in each round."""
    return [point for point in range(1, found + 1) if EVERY or point % share == (found + ROUND) % share]


async def in_peace(world: World, ask: Callable[[], object], ended: Callable[[], Awaitable[object]]) -> int:
    """One run without a crash; how many transactions it takes."""
    service = await Service.start(world)
    assert service is not None
    ask()
    await ended()
    await world.github.idle()
    return await service.stop()


@asynccontextmanager
async def killed(
    world: World, point: int, ask: Callable[[], object], end: Callable[[], Coroutine[Any, Any, object]]
) -> AsyncIterator[None]:
    """The service dies at the point, or at the turn's end if that comes first, and then is started again."""
    service = await Service.start(world, kill_at=point)
    if service is not None:
        ask()
        await service.dies_before(end())
    again = await Service.start(world)
    assert again is not None
    if service is None:  # it died while starting, before anybody knew its address
        ask()
    _redeliver_what_was_not_taken(world)
    try:
        yield
    finally:
        await again.stop()


def _redeliver_what_was_not_taken(world: World) -> None:
    """What GitHub's own log offers: a delivery that was not answered with 2xx may be sent again."""
    answered = {one.guid for one in world.app.deliveries if _taken(one)}
    for guid in {one.guid for one in world.app.deliveries} - answered:
        world.github.redeliver(guid)


def _taken(delivery: Delivery) -> bool:
    return 200 <= delivery.status_code < 300
