"""Fixtures that feature tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import webhook_rig
from tests.webhook_rig import Edge
from tests.world import World


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    async with webhook_rig.running(tmp_path) as running:
        yield running


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with World.running(tmp_path) as running:
        yield running
