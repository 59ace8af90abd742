"""Environments on the machines of several replicas: what lies here while the store says that it is elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.models import InstallationId, Outcome, Repo, RepoId, Thread, TurnKey
from bot.sessions import environments
from bot.sessions.environments import meter
from bot.sessions.services import Locks, Services
from bot.store import environments as rows
from bot.store import sessions
from bot.store.base import Address, Store
from bot.store.sessions import NewTurn

THREAD = Thread(Repo(RepoId(7), "octo", "calc", True, "main"), InstallationId(1), 5, False)


class Boxes:
    """A provider that knows only what is there."""

    def __init__(self, *names: str) -> None:
        self.there = dict.fromkeys(names)
        self.looks = asyncio.Event()
        self.may_look = asyncio.Event()
        self.may_look.set()

    async def find(self, _: Mapping[str, str]) -> list[Any]:
        found = [SimpleNamespace(id=name) for name in self.there]
        self.looks.set()
        await self.may_look.wait()
        return found

    async def end(self, name: str) -> None:
        self.there.pop(name, None)

    async def leases(self, _: str) -> list[Any]:
        return []


class NoWayOut:
    async def close(self, _: str) -> None: ...


@pytest.fixture
async def store(address: Address) -> AsyncIterator[Store]:
    opened = await Store.open(address)
    yield opened
    await opened.close()


def on_a(store: Store, boxes: Boxes) -> Services:
    found = SimpleNamespace(store=store, environments=boxes, egress=NoWayOut(), environment_locks=Locks(), here="A")
    return cast(Services, found)


async def begun(store: Store) -> TurnKey:
    new = NewTurn(THREAD, "run", "fix it", "alice", 11, "comment:1", "claude-sonnet-5-5", 5.0, 3600.0)
    key = await sessions.begin_turn(store, new)
    assert key is not None
    return key


async def test_a_sweep_ends_what_was_taken_over_elsewhere(store: Store) -> None:
    key = await begun(store)
    boxes = Boxes(rows.name_of(key))
    await rows.take(store, key, "any", "B")
    assert await meter.sweep_strays(on_a(store, boxes)) == 1
    assert not boxes.there


async def test_a_sweep_leaves_what_comes_back_while_it_looks(store: Store) -> None:
    key = await begun(store)
    boxes = Boxes(rows.name_of(key))
    boxes.may_look.clear()
    await rows.take(store, key, "any", "B")
    sweeping = asyncio.create_task(meter.sweep_strays(on_a(store, boxes)))
    await boxes.looks.wait()
    await rows.take(store, key, "any", "A")
    boxes.may_look.set()
    assert await sweeping == 0
    assert list(boxes.there) == [rows.name_of(key)], "our turn uses it"


@pytest.mark.parametrize(("before", "now"), [(None, "A"), ("A", None), ("B", "A")])
async def test_what_was_kept_before_the_store_was_moved_is_forgotten(
    store: Store, before: str | None, now: str | None
) -> None:
    key = await begun(store)
    boxes = Boxes(rows.name_of(key))
    row = await rows.take(store, key, "any", before)
    await rows.keep(store, row.id, store.now() + 1000)
    await sessions.finish(store, key, Outcome.ANSWERED, None)
    services = on_a(store, boxes)
    services.__dict__["here"] = now
    assert await meter.sweep_strays(services) == 1
    assert not boxes.there
    assert await rows.all_of_them(store) == {}


async def test_a_turn_that_comes_back_finds_no_older_agent_at_work(store: Store) -> None:
    key = await begun(store)
    turn, boxes = await sessions.turn(store, key), Boxes(rows.name_of(key))
    await rows.take(store, key, "any", "A")
    await environments._end_stale(on_a(store, boxes), turn)
    assert boxes.there, "it is the turn's own"
    await rows.take(store, key, "any", "B")
    await environments._end_stale(on_a(store, boxes), turn)
    assert not boxes.there
