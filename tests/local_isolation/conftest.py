"""Fixtures: a folder that every user reaches, a provider in it, an environment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sandbox.local.environment import LocalEnvironment
from sandbox.local.provider import LocalProvider
from tests.local_isolation.inside import created, running
from tests.world.environments import short_folder


@pytest.fixture
def root() -> Iterator[Path]:
    with short_folder() as found:
        yield found


@pytest.fixture
async def provider(root: Path) -> AsyncIterator[LocalProvider]:
    async with running(root) as found:
        yield found


@pytest.fixture
async def env(provider: LocalProvider) -> LocalEnvironment:
    return await created(provider)
