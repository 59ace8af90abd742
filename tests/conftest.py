"""Fixtures that feature tests share, and what waits for the long run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import webhook_rig
from tests.slices import EVERY
from tests.webhook_rig import Edge
from tests.world import World


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not EVERY and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="long: FORGEHAND_TESTS=all runs it"))


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    async with webhook_rig.running(tmp_path) as running:
        yield running


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with World.running(tmp_path) as running:
        yield running
