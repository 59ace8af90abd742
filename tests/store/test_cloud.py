"""The line for the places that a cloud's plan has: in memory, and in the store for all replicas."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.store import cloud
from bot.store.base import Address, Store
from bot.store.cloud import CloudPlaces
from sandbox.e2b.slots import OwnPlaces
from sandbox.primitives import PlanPlaces
from tests.world.postgres import PostgresServer

SPACING = 100.0


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Address | None:
    server: PostgresServer | None = request.getfixturevalue("postgres") if request.param == "postgres" else None
    if request.param == "memory":
        return None
    return tmp_path / "state.db" if server is None else server.fresh()


@pytest.fixture
async def places(where: Address | None) -> AsyncIterator[PlanPlaces]:
    if where is None:
        yield OwnPlaces()
        return
    store = await Store.open(where)
    await cloud.instance(store, "here")
    yield CloudPlaces(store)
    await store.close()


async def asked(places: PlanPlaces, *keys: str, most: int = 2, ahead: bool = False) -> list[bool]:
    return [await places.ask(key, most, SPACING, ahead=ahead) is not None for key in keys]


async def test_who_came_first_gets_the_place_that_is_given_back(places: PlanPlaces) -> None:
    assert await asked(places, "a", "b", "c", "d") == [True, True, False, False]
    assert await asked(places, "a", "b") == [True, True], "they have their places"
    await places.give("a")
    assert await asked(places, "d", "c", "d") == [False, True, False]
    await places.give("b")
    assert await asked(places, "d", "e") == [True, False]


async def test_who_goes_ahead_passes_the_others_and_who_leaves_lets_them_pass(places: PlanPlaces) -> None:
    assert await asked(places, "a", "b", most=1) == [True, False]
    assert await asked(places, "c", most=1, ahead=True) == [False]
    await places.give("a")
    assert await asked(places, "b", most=1) == [False]
    await places.give("c")
    assert await asked(places, "b", most=1) == [True]


async def test_creations_are_spaced(places: PlanPlaces) -> None:
    waits = [await places.ask(key, 3, SPACING, ahead=False) for key in "abc"]
    assert waits[0] == 0.0
    assert [round(one or 0.0, -1) for one in waits[1:]] == [SPACING, 2 * SPACING]


async def test_what_runs_counts_and_what_ended_unseen_does_not(places: PlanPlaces) -> None:
    assert await asked(places, "a", "b") == [True, True]
    await places.hold("a")
    await places.hold("x")
    before = await places.held()
    assert before == {"a", "x"}
    await places.hold("b")
    await places.correct(before, {"a", "y"})
    assert await places.held() == {"a", "b", "y"}, "b may have begun after we had asked"
    assert await asked(places, "c") == [False]
    await places.correct(await places.held(), {"a"})
    assert await asked(places, "c") == [True]


async def test_the_name_in_the_account_is_one_for_all(address: Address) -> None:
    first = await Store.open(address)
    assert await cloud.known_instance(first) is None
    assert await cloud.instance(first, "one") == "one"
    await first.close()
    second = await Store.open(address)
    assert await cloud.instance(second, "two") == "one"
    await second.close()


async def test_a_wrong_clock_keeps_nobody_waiting(store: Store) -> None:
    await cloud.instance(store, "here")
    await store.run("UPDATE cloud SET next_at = 99999999999.0")
    places = CloudPlaces(store)
    assert await places.ask("a", 2, SPACING, ahead=False) == 0.0
    wait = await places.ask("b", 2, SPACING, ahead=False)
    assert wait is not None and 0 < wait <= SPACING


async def test_what_a_dead_process_was_promised_is_free_again(store: Store) -> None:
    await cloud.instance(store, "here")
    dead, alive = CloudPlaces(store), CloudPlaces(store)
    assert await asked(dead, "held", "promised", "waiting") == [True, True, False]
    await dead.hold("held")
    assert await asked(alive, "a", "b") == [True, False], "and what it holds, it holds"
