"""Fixtures: the repository, and the execution."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.execution.bench import Bench, Origin


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    return Origin(tmp_path_factory.mktemp("origin") / "calc")


@pytest.fixture
async def bench(tmp_path: Path, origin: Origin) -> AsyncIterator[Bench]:
    found = Bench(tmp_path, origin)
    await found.open()
    yield found
    await found.execution.close()
    assert not found.primitives.folder.exists()


@pytest.fixture
def ended() -> Iterator[list[int]]:
    """Process ids that must be gone at the end."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
