"""The engine: runs turns in order within a thread, lets go on drain, and takes up again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from bot.engine import durable
from bot.engine.durable import DurableEngine
from bot.engine.protocol import EngineStatus
from bot.errors import TransientError
from bot.models import SessionId, TurnKey
from bot.settings import Address, Secret
from tests.world.postgres import PostgresServer
from tests.world.wire_cutter import WireCutter

LOOK_STATEMENTS = 6


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Address:
    if request.param == "sqlite":
        return tmp_path / "engine.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.fresh()


def key(session: str, n: int = 1) -> TurnKey:
    return TurnKey(SessionId(session), n)


class Recorder:
    """Turns that begin, then wait until they are let go."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.ended: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.changed = asyncio.Condition()

    def gate(self, key: TurnKey) -> asyncio.Event:
        return self.gates.setdefault(key.workflow_id, asyncio.Event())

    async def advance(self, key: TurnKey) -> None:
        await self.note(self.began, key)
        await self.gate(key).wait()
        await self.note(self.ended, key)

    async def note(self, where: list[str], key: TurnKey) -> None:
        async with self.changed:
            where.append(key.workflow_id)
            self.changed.notify_all()

    async def until(self, condition: object) -> None:
        assert callable(condition)
        async with asyncio.timeout(20), self.changed:
            await self.changed.wait_for(condition)


async def test_turns_of_one_thread_run_in_order_and_of_two_threads_side_by_side(where: Address) -> None:
    turns = Recorder()
    engine = DurableEngine(where, turns.advance)
    await engine.start()
    first, second, other = key("aaaaaaaa"), key("aaaaaaaa", 2), key("bbbbbbbb")
    await engine.submit(first, "1#1")
    await engine.submit(second, "1#1")
    await engine.submit(second, "1#1")
    await engine.submit(other, "1#2")
    await turns.until(lambda: len(turns.began) == 2)
    assert set(turns.began) == {first.workflow_id, other.workflow_id}
    assert await engine.status(second) is EngineStatus.WAITING
    for one in (first, second, other):
        turns.gate(one).set()
    await turns.until(lambda: len(turns.ended) == 3)
    assert turns.began.count(second.workflow_id) == 1
    await engine.drain()


async def test_a_drained_turn_is_taken_up_by_the_next_process(where: Address) -> None:
    turns = Recorder()
    one = key("aaaaaaaa")
    engine = DurableEngine(where, turns.advance)
    await engine.start()
    await engine.submit(one, "1#1")
    await turns.until(lambda: turns.began)
    await engine.drain()
    assert not turns.ended

    turns.gate(one).set()
    engine = DurableEngine(where, turns.advance)
    await engine.start()
    await turns.until(lambda: turns.ended)
    assert turns.began == [one.workflow_id] * 2
    await engine.drain()


@pytest.mark.postgres
async def test_what_a_dead_replica_ran_is_queued_again_once_and_nothing_of_the_living(postgres: PostgresServer) -> None:
    where, turns = postgres.fresh(), Recorder()
    one, two, other = key("aaaaaaaa"), key("aaaaaaaa", 2), key("bbbbbbbb")
    first = DurableEngine(where, turns.advance, executor="first", room=1)
    await first.start()
    await first.submit(one, "1#1")
    await turns.until(lambda: turns.began)
    await first.submit(two, "1#1")
    await first.submit(other, "1#2")
    await first.drain()

    second = DurableEngine(where, turns.advance, executor="second", room=5)
    await second.start()
    await turns.until(lambda: other.workflow_id in turns.began)

    async def all_of_them() -> frozenset[str]:
        return frozenset({"first", "second"})

    async def only_us() -> frozenset[str]:
        return frozenset({"second"})

    assert await second.adopt(all_of_them) == 0
    assert turns.began == [one.workflow_id, other.workflow_id], "its thread waits for it"
    assert await second.adopt(only_us) == 1
    await turns.until(lambda: turns.began.count(one.workflow_id) == 2)
    assert await second.adopt(only_us) == 0, "it is ours now"
    for each in (one, two, other):
        turns.gate(each).set()
    await turns.until(lambda: len(turns.ended) == 3)
    assert sorted(turns.began) == sorted([one.workflow_id] * 2 + [two.workflow_id, other.workflow_id])
    await second.drain()


@pytest.mark.postgres
async def test_a_database_that_is_away_is_an_error_that_passes_with_it(postgres: PostgresServer) -> None:
    turns, one = Recorder(), key("aaaaaaaa")
    async with WireCutter.running(postgres.port) as wire:
        where = Secret(postgres.fresh().reveal().replace(str(postgres.port), str(wire.port)))
        engine = DurableEngine(where, turns.advance)
        await engine.start()
        wire.refusing = True
        wire.cut()
        for _ in range(4):  # DBOS itself would wait twice as long each time
            with pytest.raises(TransientError):
                await engine.submit(one, "1#1")
        wire.refusing = False
        async with asyncio.timeout(2):
            await engine.submit(one, "1#1")
        turns.gate(one).set()
        await turns.until(lambda: turns.ended)
        await engine.drain()


@pytest.mark.postgres
async def test_what_a_dead_replica_of_an_older_version_ran_waits_for_another_of_that_version(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, turns, one = postgres.fresh(), Recorder(), key("aaaaaaaa")
    older = DurableEngine(where, turns.advance, executor="older")
    await older.start()
    await older.submit(one, "1#1")
    await turns.until(lambda: turns.began)
    await older.drain()
    with monkeypatch.context() as patch:
        patch.setattr(durable, "VERSION", "forgehand-next")
        newer = DurableEngine(where, turns.advance, executor="newer")
        await newer.start()

        async def living() -> frozenset[str]:
            return frozenset({"newer"})

        assert await newer.adopt(living) == 1
        assert await newer.adopt(living) == 0
        assert await newer.status(one) is EngineStatus.WAITING
        await newer.drain()
    again = DurableEngine(where, turns.advance, executor="older too")
    await again.start()
    await turns.until(lambda: len(turns.began) == 2)
    await again.drain()


@pytest.mark.postgres
async def test_a_claim_whose_answer_was_lost_is_given_back(postgres: PostgresServer) -> None:
    """The database says that we run the turn, and we do not know of it."""
    where, turns, first, one = postgres.fresh(), Recorder(), key("aaaaaaaa"), key("aaaaaaaa", 2)
    engine = DurableEngine(where, turns.advance, executor="first")
    await engine.start()
    await engine.submit(first, "1#1")
    await turns.until(lambda: turns.began)
    await engine.submit(one, "1#1")
    claim = "UPDATE dbos.workflow_status SET status = 'PENDING', executor_id = 'first' WHERE workflow_uuid = %s"
    with psycopg.connect(where.reveal()) as connection:
        assert connection.execute(claim, (one.workflow_id,)).rowcount == 1
    assert await engine.reclaim() == 0, "it may be about to begin"
    assert await engine.reclaim() == 1
    assert await engine.status(one) is EngineStatus.WAITING
    assert [await engine.reclaim() for _ in range(3)] == [0, 0, 0]
    for each in (first, one):
        turns.gate(each).set()
    await turns.until(lambda: len(turns.ended) == 2)
    assert turns.began == [first.workflow_id, one.workflow_id]
    await engine.drain()


@pytest.mark.postgres
async def test_a_late_begin_of_a_turn_that_another_has_by_now_does_nothing(postgres: PostgresServer) -> None:
    where, turns, one = postgres.fresh(), Recorder(), key("aaaaaaaa")
    first = DurableEngine(where, turns.advance, executor="first", room=1)
    await first.start()
    await first.submit(one, "1#1")
    await turns.until(lambda: turns.began)
    for late in (first, DurableEngine(where, turns.advance, executor="second", room=1)):
        if late is not first:
            await first.drain()
            await late.start()
        running = asyncio.ensure_future(late._run(one))
        done, _ = await asyncio.wait({running}, timeout=1.0)
        assert not done
        running.cancel()
        await asyncio.wait({running})
        assert turns.began == [one.workflow_id]
        await late.drain()


async def test_a_turn_of_which_we_hear_nothing_is_found(where: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "BUSY_SECONDS", 0.0)
    turns, one = Recorder(), key("aaaaaaaa")
    engine = DurableEngine(where, turns.advance, on_queued=lambda: None)
    await engine.start()
    await engine.submit(one, "1#1")
    await turns.until(lambda: turns.began)
    await engine.drain()


async def test_no_more_turns_than_there_is_room_for_are_taken(where: Address) -> None:
    turns, keys = Recorder(), [key(letter * 8) for letter in "abcd"]
    engine = DurableEngine(where, turns.advance, room=2)
    await engine.start()
    for n, one in enumerate(keys):
        await engine.submit(one, f"1#{n}")
    await turns.until(lambda: len(turns.began) == 2)
    for _ in range(3):
        assert await engine._look() == durable.QUEUE_SECONDS
        assert len(turns.began) == 2
    for one in keys:
        turns.gate(one).set()
    await turns.until(lambda: len(turns.ended) == 4)
    await engine.drain()


@pytest.mark.postgres
async def test_an_idle_engine_leaves_the_database_alone(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable, "BUSY_SECONDS", 0.0)
    async with WireCutter.running(postgres.port) as wire:
        where = Secret(postgres.fresh().reveal().replace(str(postgres.port), str(wire.port)))
        engine = DurableEngine(where, Recorder().advance)
        await engine.start()
        async with asyncio.timeout(40):
            while True:  # until the start has said its last
                before = wire.statements
                await asyncio.sleep(2 * durable.QUIET_SECONDS)
                if 0 < wire.statements - before <= 3 * LOOK_STATEMENTS:
                    break
        await engine.drain()


async def test_a_lost_engine_file_loses_no_turn(where: Address) -> None:
    turns = Recorder()
    one = key("aaaaaaaa")
    turns.gate(one).set()
    engine = DurableEngine(where, turns.advance)
    await engine.start()
    assert await engine.resubmit([(one, "1#1")]) == 1
    await turns.until(lambda: turns.ended)
    await engine.drain()


async def test_a_workflow_that_ended_without_finishing_its_turn_runs_anew(where: Address) -> None:
    turns = Recorder()
    one = key("aaaaaaaa")
    turns.gate(one).set()
    engine = DurableEngine(where, turns.advance)
    await engine.start()
    await engine.submit(one, "1#1")
    await turns.until(lambda: turns.ended)
    async with asyncio.timeout(20):
        while await engine.status(one) is not EngineStatus.ENDED:
            await asyncio.sleep(0)
    await engine.submit(one, "1#1")
    await turns.until(lambda: len(turns.ended) == 2)
    await engine.drain()


@pytest.mark.parametrize("threads", [20])
async def test_a_long_thread_does_not_starve_the_others(where: Address, threads: int) -> None:
    turns = Recorder()
    engine = DurableEngine(where, turns.advance)
    await engine.start()
    for n in range(1, threads + 1):
        await engine.submit(key("aaaaaaaa", n), "1#1")
    lone = key("bbbbbbbb")
    turns.gate(lone).set()
    await engine.submit(lone, "2#1")
    await turns.until(lambda: turns.ended == [lone.workflow_id])
    await engine.drain()
