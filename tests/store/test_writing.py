"""The store as its users see it: durable, together, one state at a time."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from bot.errors import StoreError, TransientError
from bot.store.base import Database, Store
from bot.store.rows import many, run
from bot.store.sqlite import schema
from bot.store.sqlite.backend import SqliteWriting
from bot.store.writer import Writer
from tests.store.rows import INSERT, guids, insert
from tests.world.stored import file_of, on_file


async def test_what_is_written_is_seen_by_readers_and_by_the_next_process(store: Store) -> None:
    assert await store.write(insert("a")) == 1
    assert await guids(store) == ["a"]
    await store.close()
    again = await Store.open(store.where)
    assert await guids(again) == ["a"]
    await again.close()


async def test_a_failing_job_undoes_only_itself(store: Store) -> None:
    def fails(db: Database) -> None:
        run(db, INSERT, guid="half")
        raise LookupError("no")

    jobs = [store.write(insert("a")), store.write(fails), store.write(insert("a")), store.write(insert("b"))]
    first, second, third, last = await asyncio.gather(*jobs, return_exceptions=True)
    assert (first, last) == (1, 1)
    assert isinstance(second, LookupError)
    assert isinstance(third, sqlite3.IntegrityError | psycopg.IntegrityError)
    assert await guids(store) == ["a", "b"]


@on_file
async def test_jobs_that_wait_share_a_commit(store: Store) -> None:
    commits: list[float] = []
    gate = threading.Event()
    db = schema.writable(file_of(store))
    alone = Writer(SqliteWriting(db, file_of(store)), lambda: commits.append(store.now()))
    held = alone.submit(lambda db: gate.wait(10))
    jobs = [alone.submit(insert(str(n))) for n in range(300)]
    gate.set()
    await asyncio.gather(held, *jobs)
    await asyncio.to_thread(alone.close)
    db.close()
    assert len(await guids(store)) == 300
    assert len(commits) <= 3


async def test_a_read_is_one_state(store: Store) -> None:
    loop = asyncio.get_running_loop()

    def twice(db: Database) -> tuple[int, int]:
        first = len(many(db, "SELECT guid FROM deliveries"))
        asyncio.run_coroutine_threadsafe(store.write(insert("between")), loop).result(10)
        return first, len(many(db, "SELECT guid FROM deliveries"))

    assert await store.read(twice) == (0, 0)
    assert await guids(store) == ["between"]


async def test_readers_cannot_write(store: Store) -> None:
    with pytest.raises(StoreError):
        await store.read(insert("a"))


async def test_commands_read_beside_the_service_but_do_not_write(store: Store) -> None:
    await store.write(insert("a"))
    command = await Store.open_reader(store.where)
    assert await guids(command) == ["a"]
    with pytest.raises(StoreError, match="reading only"):
        await command.write(insert("b"))
    await command.close()


async def test_a_command_may_leave_a_row_without_migrating(store: Store) -> None:
    command = await Store.open(store.where, migrate=False)
    await command.write(insert("from the command line"))
    await command.close()
    assert await guids(store) == ["from the command line"]


async def test_close_writes_what_waits_and_then_refuses(store: Store) -> None:
    waiting = [asyncio.ensure_future(store.write(insert(str(n)))) for n in range(50)]
    await asyncio.gather(waiting[0])
    await store.close()
    await asyncio.gather(*waiting)
    with pytest.raises(TransientError):
        await store.write(insert("late"))
    with pytest.raises(TransientError):
        await store.read(insert("late"))


async def test_a_cancelled_caller_harms_nobody(store: Store) -> None:
    task = asyncio.ensure_future(store.write(insert("a")))
    await asyncio.get_running_loop().run_in_executor(None, lambda: None)
    task.cancel()
    await store.write(insert("b"))
    assert "b" in await guids(store)


async def test_wrapping_write_sees_each_commit(tmp_path: Path) -> None:
    class Counting(Store):
        writes = 0

        async def write(self, work: Callable[[Database], object]) -> object:  # type: ignore[override]
            result = await super().write(work)
            self.writes += 1
            return result

    counting = await Counting.open(tmp_path / "state.db")
    await counting.write(insert("a"))
    assert counting.writes == 1
    await counting.close()


def test_importing_the_store_does_not_load_sqlite_utils() -> None:
    code = "import sys, bot.store.sessions, bot.web.webhooks; sys.exit('sqlite_utils' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
