"""Fixtures that feature tests share, and what waits for the long run."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest

from bot.store.base import Address
from tests.repository import rooms
from tests.slices import EVERY
from tests.walk import watching
from tests.world import World
from tests.world import webhooks as webhook_rig
from tests.world.postgres import PostgresServer
from tests.world.webhooks import Edge

SHORT = ("unit", "store", "host_git", "github_client", "simulation", "e2b_stand_in", "contract")
"""Folders whose tests take a second at most."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "unit":
            item.add_marker("quick")
        if not EVERY and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="long: FORGEHAND_TESTS=all runs it"))
    items.sort(key=_how_soon)


def _how_soon(item: pytest.Item) -> int:
    """Longest first, so that no worker is left with minutes of work when the others have finished: what has asked for
    more time than others have; then worlds; last what only computes."""
    if item.get_closest_marker("timeout"):
        return 0
    return 2 if item.path.parent.name in SHORT else 1


def pytest_collection_finish() -> None:
    """What is there now stays: the collector need not look through half a million objects again in each test. What a
    test leaves is small beside the workers, so it is looked for a tenth as often: a tenth less CPU in each world."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """What a quick test says of itself is checked: functions of each package that it names were called."""
    claimed = {room for mark in item.iter_markers("quick") for room in mark.args}
    if not claimed:
        return (yield)
    with watching() as watch:
        watch.on = True
        result = yield
    assert not (missed := rooms.missed(claimed, watch.entered)), f"never entered: {missed}"
    return result


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer.running() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Address:
    """Where a store may be: the test holds for either database."""
    if request.param == "sqlite":
        return tmp_path / "data" / "state.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.fresh()


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    async with webhook_rig.running(tmp_path) as running:
        yield running


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with World.running(tmp_path) as running:
        yield running
