"""`kill -9` while commits are signed by GitHub and pushed: one branch, one commit, one pull request, at any moment."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from bot.simulation.github import gitstore
from tests.crash import points
from tests.slices import EVERY, MATRIX_SECONDS
from tests.world import World
from tests.world.pulls import does

ASKED = "/claude fix this"
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


@pytest.mark.acceptance("F01")
@pytest.mark.timeout(MATRIX_SECONDS)
async def test_pulls_verified_commits_survive_a_kill_after_any_transaction(tmp_path: Path) -> None:
    async with World.running(tmp_path / "golden") as world:
        prepared(world)
        found = await points.in_peace(world, partial(world.say, ASKED), partial(published, world))
    for point in range(1, found + 1) if EVERY else range(found - LAST, found - 1, 5):
        async with World.running(tmp_path / f"at-{point}") as world:
            prepared(world)
            async with points.killed(world, point, partial(world.say, ASKED), world.outcome):
                await published(world)
