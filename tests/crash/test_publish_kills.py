"""`kill -9` while commits are signed by GitHub and pushed: one branch, one commit, one pull request, at any moment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.simulation.github import gitstore
from tests.crash.process import Service
from tests.crash.test_kill_points import _redeliver_what_was_not_taken as redeliver
from tests.pull_world import does
from tests.world import World

EVERY = os.environ.get("FORGEHAND_TESTS") == "all"
LAST = 12
"""Of the transactions: those before it have nothing to do with the push."""


def prepared(world: World) -> None:
    config = "commits: verified\npull: {labels: [bot]}\n"
    world.github.create_label(world.repo, "bot")
    world.github.commit(world.repo, "main", {".github/forgehand.yml": config}, by="alice")
    world.model.default(does("echo x > a.txt"))


async def published(world: World) -> None:
    """All of it, once, and nothing beside it."""
    assert await world.outcome() == "pull_request", world.replies()[-1].body
    [pull] = world.pulls()
    found = gitstore.git(world.repo.path, "rev-list", pull.head_sha, "^refs/heads/main").decode().split()
    assert found == [pull.head_sha] and pull.head_sha in world.repo.verified
    assert world.repo.branches().keys() == {"main", pull.head}
    assert not gitstore.refs(world.repo.path, "refs/forgehand/")
    assert [one.name for one in pull.issue.labels] == ["bot"] and len(pull.requested) == 1
    assert len(world.replies()) == 1


async def in_peace(path: Path) -> int:
    async with World.running(path) as world:
        prepared(world)
        service = await Service.start(world)
        assert service is not None
        world.say("/claude fix this")
        await published(world)
        return await service.stop()


async def killed(path: Path, point: int) -> None:
    async with World.running(path) as world:
        prepared(world)
        service = await Service.start(world, kill_at=point)
        assert service is not None
        world.say("/claude fix this")
        await service.dies_before(world.outcome())
        again = await Service.start(world)
        assert again is not None
        redeliver(world)
        try:
            await published(world)
        finally:
            await again.stop()


@pytest.mark.acceptance("F01")
@pytest.mark.timeout(3600 if EVERY else 300)
async def test_pulls_verified_commits_survive_a_kill_after_any_transaction(tmp_path: Path) -> None:
    found = await in_peace(tmp_path / "golden")
    points = range(1, found + 1) if EVERY else range(found - LAST, found - 1, 3)
    for point in points:
        await killed(tmp_path / f"at-{point}", point)
