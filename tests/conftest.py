"""Fixtures that feature tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.world import World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with World.running(tmp_path) as running:
        yield running
