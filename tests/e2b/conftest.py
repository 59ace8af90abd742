"""A stand-in for E2B, and a provider of ours that uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sandbox.e2b.provider import E2BProvider
from tests.world.e2b import E2BWorld, e2b_world
from tests.world.environments import short_folder, small_agent


@pytest.fixture
def root() -> Iterator[Path]:
    with short_folder() as found:
        yield found


@pytest.fixture
async def world(root: Path) -> AsyncIterator[E2BWorld]:
    async with e2b_world(root, small_agent(root)) as found:
        yield found


@pytest.fixture
async def provider(world: E2BWorld) -> AsyncIterator[E2BProvider]:
    found = world.provider()
    yield found
    await found.close()
