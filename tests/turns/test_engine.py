"""The engine: runs turns in order within a thread, lets go on drain, and takes up again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.engine.durable import DurableEngine
from bot.engine.protocol import EngineStatus
from bot.models import SessionId, TurnKey


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


async def test_turns_of_one_thread_run_in_order_and_of_two_threads_side_by_side(tmp_path: Path) -> None:
    turns = Recorder()
    engine = DurableEngine(tmp_path / "engine.db", turns.advance)
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


async def test_a_drained_turn_is_taken_up_by_the_next_process(tmp_path: Path) -> None:
    turns = Recorder()
    one = key("aaaaaaaa")
    engine = DurableEngine(tmp_path / "engine.db", turns.advance)
    await engine.start()
    await engine.submit(one, "1#1")
    await turns.until(lambda: turns.began)
    await engine.drain()
    assert not turns.ended

    turns.gate(one).set()
    engine = DurableEngine(tmp_path / "engine.db", turns.advance)
    await engine.start()
    await turns.until(lambda: turns.ended)
    assert turns.began == [one.workflow_id] * 2
    await engine.drain()


async def test_a_lost_engine_file_loses_no_turn(tmp_path: Path) -> None:
    turns = Recorder()
    one = key("aaaaaaaa")
    turns.gate(one).set()
    engine = DurableEngine(tmp_path / "engine.db", turns.advance)
    await engine.start()
    assert await engine.resubmit([(one, "1#1")]) == 1
    await turns.until(lambda: turns.ended)
    await engine.drain()


async def test_a_workflow_that_ended_without_finishing_its_turn_runs_anew(tmp_path: Path) -> None:
    turns = Recorder()
    one = key("aaaaaaaa")
    turns.gate(one).set()
    engine = DurableEngine(tmp_path / "engine.db", turns.advance)
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
async def test_a_long_thread_does_not_starve_the_others(tmp_path: Path, threads: int) -> None:
    turns = Recorder()
    engine = DurableEngine(tmp_path / "engine.db", turns.advance)
    await engine.start()
    for n in range(1, threads + 1):
        await engine.submit(key("aaaaaaaa", n), "1#1")
    lone = key("bbbbbbbb")
    turns.gate(lone).set()
    await engine.submit(lone, "2#1")
    await turns.until(lambda: turns.ended == [lone.workflow_id])
    await engine.drain()
