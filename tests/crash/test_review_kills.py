"""`kill -9` while a pull request is reviewed: one review, one check run, each finding once, whatever the moment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.simulation.anthropic import Script
from bot.simulation.github.state import Pull
from tests.crash.process import Service
from tests.crash.test_kill_points import _redeliver_what_was_not_taken as redeliver
from tests.test_reviews import SPAN, ZERO, ours, pull_of, verdict
from tests.world import World

EVERY = os.environ.get("FORGEHAND_TESTS") == "all"
SLICE = 12


def posted(world: World) -> Pull:
    world.model.default(Script([verdict(ZERO, SPAN)]))
    return pull_of(world)


async def shown(world: World, pull: Pull) -> None:
    """All that is to be there, once."""
    assert await world.outcome(on=pull) == "reviewed", world.replies(pull)[-1].body

    def told() -> bool:
        checks = list(world.repo.checks.values())
        return bool(checks) and all(one.conclusion and len(one.output["annotations"]) >= 2 for one in checks)

    await world.github.changed(told, 60)
    [check] = world.repo.checks.values()
    assert len(check.output["annotations"]) == 2
    [review] = ours(world, pull)
    assert [one.line for one in review.comments] == [2, 6] and len(world.replies(pull)) == 1


async def in_peace(path: Path) -> int:
    async with World.running(path) as world:
        pull = posted(world)
        service = await Service.start(world)
        assert service is not None
        world.say("/claude review", on=pull)
        await shown(world, pull)
        return await service.stop()


async def killed(path: Path, point: int) -> None:
    async with World.running(path) as world:
        pull = posted(world)
        service = await Service.start(world, kill_at=point)
        if service is not None:
            world.say("/claude review", on=pull)
            await service.dies_before(world.outcome(on=pull))
        again = await Service.start(world)
        assert again is not None
        if service is None:
            world.say("/claude review", on=pull)
        redeliver(world)
        try:
            await shown(world, pull)
        finally:
            await again.stop()


@pytest.mark.acceptance("F01")
@pytest.mark.timeout(3600 if EVERY else 300)
async def test_a_review_survives_a_kill_after_any_transaction(tmp_path: Path) -> None:
    found = await in_peace(tmp_path / "golden")
    assert found > 12
    for point in [one for one in range(1, found + 1) if EVERY or one % SLICE == found % SLICE]:
        await killed(tmp_path / f"at-{point}", point)
