"""Fixtures that feature tests share, and what waits for the long run."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest

from bot.store.base import Address
from tests import durations, slices
from tests.repository import rooms
from tests.walk import watching
from tests.world import World
from tests.world import webhooks as webhook_rig
from tests.world.postgres import PostgresServer
from tests.world.webhooks import Edge

SHORT = ("unit", "store", "host_git", "github_client", "simulation", "e2b_stand_in", "contract")
"""Folders whose tests take a second at most."""
SECONDS = durations.known()


def pytest_report_header() -> list[str]:
    if not slices.IS_CHOSEN:
        return []
    return [f"round: {slices.VARIABLE}={slices.ROUND} repeats this choice of tests; FORGEHAND_TESTS=all runs all"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "unit":
            item.add_marker("quick")
        if not slices.EVERY and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="long: FORGEHAND_TESTS=all runs it"))
    if slices.IS_CHOSEN and not config.option.collectonly:
        _leave_to_other_rounds(config, items)
    items.sort(key=_how_soon)


def _leave_to_other_rounds(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let long tests take turns. Of a test with a row of the acceptance list, a case runs in each round."""
    cases, met = Counter(map(_test, items)), Counter[str]()
    due: list[pytest.Item] = []
    later: list[pytest.Item] = []
    for item in items:
        test = _test(item)
        is_promised = item.get_closest_marker("acceptance") is not None
        rounds = min(cases[test], slices.ROUNDS) if is_promised else slices.ROUNDS
        always = test not in SECONDS or item.get_closest_marker("quick") is not None
        (due if always or slices.is_due(test, met[test], rounds) else later).append(item)
        met[test] += 1
    items[:] = due
    config.hook.pytest_deselected(items=later)


def _test(item: pytest.Item) -> str:
    """Name the test without its case."""
    return item.nodeid.partition("[")[0]


def _how_soon(item: pytest.Item) -> tuple[int, int]:
    """Longest first, so that no worker is left with minutes of work when the others have finished; last what only
    computes."""
    return -SECONDS.get(_test(item), 0), int(item.path.parent.name in SHORT)


def pytest_collection_finish() -> None:
    """What is there now stays: the collector need not look through half a million objects again in each test. What a
    test leaves is small beside the workers, so it is looked for a tenth as often: a tenth less CPU in each world."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """What a quick test says of itself is checked: functions of each package that it names were called."""
    claimed = {room for mark in item.iter_markers("quick") for room in mark.args}
    if not claimed or "FORGEHAND_TESTS_ON" in os.environ:  # with another store, other packages are entered
        return (yield)
    with watching() as watch:
        watch.on = True
        result = yield
    assert not (missed := rooms.missed(claimed, watch.entered)), f"never entered: {missed}"
    return result


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer.started() as server:
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
