"""The store under locks, full disks and kills."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bot.errors import TransientError
from bot.store import writer
from bot.store.base import Store
from bot.store.rows import run
from bot.store.sqlite import schema
from bot.store.sqlite.backend import Checkpoints
from tests.store.rows import INSERT, guids, insert
from tests.world.stored import file_of, on_file


def lock_file(path: Path) -> sqlite3.Connection:
    other = sqlite3.connect(path, isolation_level=None, timeout=5)
    other.execute("BEGIN IMMEDIATE")
    return other


@on_file
@pytest.mark.acceptance("F06")
async def test_a_short_lock_is_waited_for(store: Store) -> None:
    other = lock_file(file_of(store))
    task = asyncio.ensure_future(store.write(insert("a")))
    await asyncio.wait([task], timeout=0.4)
    assert not task.done()
    other.execute("COMMIT")
    assert await task == 1
    other.close()


@on_file
@pytest.mark.acceptance("F06")
async def test_a_long_lock_ends_the_wait_and_later_writes_succeed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BUDGET_SECONDS", 0.3)
    other = lock_file(file_of(store))
    with pytest.raises(TransientError, match="locked"):
        await store.write(insert("a"))
    assert await guids(store) == []
    other.execute("COMMIT")
    other.close()
    assert await store.write(insert("a")) == 1


@on_file
@pytest.mark.acceptance("F05")
async def test_a_full_disk_fails_the_job_and_passes(store: Store) -> None:
    """SQLite's own page limit gives the same error as a full disk."""
    pages = await store.write(lambda db: db.execute("PRAGMA page_count").fetchone()[0])
    await store.write(lambda db: db.execute(f"PRAGMA max_page_count = {pages + 4}").fetchone())
    big = "x" * 200_000
    update = "UPDATE deliveries SET body = :body"
    await store.write(insert("a"))
    with pytest.raises(TransientError, match="disk full"):
        await store.write(lambda db: run(db, update, body=big))
    others = await asyncio.gather(
        store.write(insert("b")), store.write(lambda db: run(db, update, body=big)), return_exceptions=True
    )
    assert others[0] == 1
    assert isinstance(others[1], TransientError)
    await store.write(lambda db: db.execute("PRAGMA max_page_count = 1000000").fetchone())
    assert await store.write(lambda db: run(db, update, body=big)) == 2
    assert await store.read(lambda db: db.execute("PRAGMA quick_check").fetchone()[0]) == "ok"


@on_file
async def test_the_log_is_folded_into_the_file_in_the_background(store: Store) -> None:
    before = file_of(store).stat().st_size
    folding = Checkpoints(schema.writable(file_of(store)), interval_seconds=0.01)
    await asyncio.gather(*(store.write(insert(f"{n}")) for n in range(2000)))
    folding.note()

    def folded() -> bool:
        return any(file_of(store).stat().st_size > before or threading.Event().wait(0.01) for _ in range(500))

    assert await asyncio.to_thread(folded)
    await asyncio.to_thread(folding.close)


def test_closing_is_never_missed_whenever_it_comes(tmp_path: Path) -> None:
    """The moment when the pause after a commit is over is met by trying those around it."""
    db, pause, switching = tmp_path / "state.db", 0.001, sys.getswitchinterval()
    db.touch()
    sys.setswitchinterval(1e-6)
    try:
        for n in range(200):
            folding = Checkpoints(schema.writable(db), interval_seconds=pause)
            noted = time.perf_counter()
            folding.note()
            while time.perf_counter() < noted + pause * (0.9 + n % 50 / 100):
                pass
            closing = threading.Thread(target=folding.close, daemon=True)
            closing.start()
            closing.join(10)
            assert not closing.is_alive(), f"closing hangs ({n})"
    finally:
        sys.setswitchinterval(switching)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from bot.store.base import Store
from bot.store.rows import run

async def main():
    store = await Store.open(Path(sys.argv[1]))
    for n in range(20):
        await store.write(lambda db: run(db, sys.argv[2], guid=f"{n:02}"))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.acceptance("F04")
async def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    ended = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", KILLED, str(path), INSERT], timeout=60, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    store = await Store.open(path)
    assert await guids(store) == [f"{n:02}" for n in range(20)]
    await store.close()
