"""The store as its users see it: durable, together, refused with a sentence when the files are not fit."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from bot.errors import StoreError, TransientError
from bot.store import connections, schema, writer
from bot.store.base import Database, Store
from bot.store.checkpoints import Checkpoints
from bot.store.lock import DataDirLock
from bot.store.rows import many, run
from bot.store.writer import Writer

INSERT = """
INSERT INTO deliveries (guid, event, body_sha256, received_at, state) VALUES (:guid, 'issues', 'x', 1.0, 'received')
"""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(tmp_path / "data" / "state.db")
    yield opened
    await opened.close()


def insert(guid: str) -> Callable[[Database], int]:
    return lambda db: run(db, INSERT, guid=guid)


async def guids(store: Store) -> list[str]:
    rows = await store.read(lambda db: many(db, "SELECT guid FROM deliveries ORDER BY guid"))
    return [row["guid"] for row in rows]


def lock_file(path: Path) -> sqlite3.Connection:
    other = sqlite3.connect(path, isolation_level=None, timeout=5)
    other.execute("BEGIN IMMEDIATE")
    return other


# Writing and reading


async def test_what_is_written_is_seen_by_readers_and_by_the_next_process(store: Store) -> None:
    assert await store.write(insert("a")) == 1
    assert await guids(store) == ["a"]
    await store.close()
    again = await Store.open(store.path)
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
    assert isinstance(third, sqlite3.IntegrityError)
    assert await guids(store) == ["a", "b"]


async def test_jobs_that_wait_share_a_commit(store: Store) -> None:
    commits: list[float] = []
    gate = threading.Event()
    db = connections.writable(store.path)
    alone = Writer(db, store.path, lambda: commits.append(store.now()))
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
    command = await Store.open_reader(store.path)
    assert await guids(command) == ["a"]
    with pytest.raises(StoreError, match="reading only"):
        await command.write(insert("b"))
    await command.close()


async def test_a_command_may_leave_a_row_without_migrating(store: Store) -> None:
    command = await Store.open(store.path, migrate=False)
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


# Locks, full disks, kills


@pytest.mark.acceptance("F06")
async def test_a_short_lock_is_waited_for(store: Store) -> None:
    other = lock_file(store.path)
    task = asyncio.ensure_future(store.write(insert("a")))
    await asyncio.wait([task], timeout=0.4)
    assert not task.done()
    other.execute("COMMIT")
    assert await task == 1
    other.close()


@pytest.mark.acceptance("F06")
async def test_a_long_lock_ends_the_wait_and_later_writes_succeed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BUDGET_SECONDS", 0.3)
    other = lock_file(store.path)
    with pytest.raises(TransientError, match="locked"):
        await store.write(insert("a"))
    assert await guids(store) == []
    other.execute("COMMIT")
    other.close()
    assert await store.write(insert("a")) == 1


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


async def test_the_log_is_folded_into_the_file_in_the_background(store: Store) -> None:
    before = store.path.stat().st_size
    folding = Checkpoints(connections.writable(store.path), interval_seconds=0.01)
    await asyncio.gather(*(store.write(insert(f"{n}")) for n in range(2000)))
    folding.note()

    def folded() -> bool:
        return any(store.path.stat().st_size > before or threading.Event().wait(0.01) for _ in range(500))

    assert await asyncio.to_thread(folded)
    await asyncio.to_thread(folding.close)


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


# Refusals


async def made(path: Path) -> bytes:
    store = await Store.open(path)
    await store.write(insert("a"))
    await store.close()
    return path.read_bytes()


@pytest.mark.acceptance("F07")
async def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await made(path)
    with sqlite3.connect(path) as db:
        db.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('forgehand', '9999_future', 'x')"
        )
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"newer Forgehand \(schema 9999_future.*Install"):
        await Store.open(path)
    with pytest.raises(StoreError, match="newer Forgehand"):
        await Store.open_reader(path)
    assert path.read_bytes() == before


@pytest.mark.acceptance("F07")
@pytest.mark.parametrize("where", ["header", "pages", "short"])
async def test_a_damaged_file_is_refused_and_left_alone(tmp_path: Path, where: str) -> None:
    path = tmp_path / "state.db"
    content = bytearray(await made(path))
    if where == "header":
        content[0:16] = b"not a database!!"
    elif where == "pages":
        content[4096 : len(content)] = bytes(255 - byte for byte in content[4096:])
    else:
        del content[len(content) // 2 :]
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged.*quick_check.*backup"):
        await Store.open(path)
    assert path.read_bytes() == content


@pytest.mark.acceptance("F07")
async def test_a_database_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE recipes (id INTEGER)")
    db.close()
    with pytest.raises(StoreError, match="another program"):
        await Store.open(path)


@pytest.mark.acceptance("F07")
async def test_a_vanished_database_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await made(path)
    path.unlink()
    with pytest.raises(StoreError, match=r"missing.*Restore"):
        await Store.open(path)
    assert not path.exists()
    path.with_name("state.db.created").unlink()
    await made(path)


@pytest.mark.acceptance("F07")
async def test_read_only_files_and_folders_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await made(path)
    path.chmod(0o400)
    with pytest.raises(StoreError, match="chmod u\\+w"):
        await Store.open(path)
    path.chmod(0o600)
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="chmod 700"):
        await Store.open(path)
    tmp_path.chmod(0o700)


@pytest.mark.acceptance("F07")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
async def test_files_of_another_user_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await made(path)
    os.chown(path, 12345, 12345)
    with pytest.raises(StoreError, match="belongs to user 12345"):
        await Store.open(path)
    os.chown(path, os.geteuid(), os.getegid())
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(StoreError, match="chown"):
        await Store.open(path)


@pytest.mark.acceptance("F07")
async def test_odd_places_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="not a folder"):
        await Store.open(tmp_path / "file" / "state.db")
    (tmp_path / "state.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(StoreError, match="regular file"):
        await Store.open(tmp_path / "state.db")
    with pytest.raises(StoreError, match="serve"):
        await Store.open_reader(tmp_path / "nothing.db")


async def test_the_data_directory_is_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state.db"
    store = await Store.open(path)
    await store.write(insert("a"))
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes.keys() >= {"state.db", "state.db-wal", "state.db-shm"}
    assert set(modes.values()) == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700
    await store.close()


async def test_an_open_folder_is_closed_if_ours_and_refused_if_shared(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.mkdir(mode=0o755)
    await made(ours / "state.db")
    assert ours.stat().st_mode & 0o777 == 0o700
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    (shared / "letters").write_text("mine")
    with pytest.raises(StoreError, match="holds other files"):
        await Store.open(shared / "state.db")
    assert shared.stat().st_mode & 0o777 == 0o755


# Migrations


def folder_with(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "migrations"
    folder.mkdir(exist_ok=True)
    for name, sql in files.items():
        (folder / f"{name.lstrip('m')}.sql").write_text(sql)
    return folder


@pytest.mark.acceptance("F08")
def test_a_migration_interrupted_half_way_leaves_nothing_and_completes_when_run_again(tmp_path: Path) -> None:
    from sqlite_utils import Database as Library

    db = Library(sqlite3.connect(tmp_path / "x.db", isolation_level=None))
    folder = folder_with(tmp_path, m0001_a="CREATE TABLE a (id INTEGER); CREATE TABLE b (id INTEGER); SELECT nonsense;")
    with pytest.raises(sqlite3.OperationalError):
        schema.migrate(db, folder)
    assert db.table_names() == []
    folder_with(tmp_path, m0001_a="CREATE TABLE a (id INTEGER);", m0002_b="ALTER TABLE a ADD COLUMN more TEXT;")
    schema.migrate(db, folder)
    schema.migrate(db, folder)
    assert [column.name for column in db.table("a").columns] == ["id", "more"]
    db.close()


MIGRATING = """
import os, signal, sqlite3, sys
from pathlib import Path
from bot.store import connections, schema

path, folder = Path(sys.argv[1]), Path(sys.argv[2])
path.touch()
db = connections.writable(path)
db.conn.create_function("die", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
schema.migrate(db, folder)
"""


@pytest.mark.acceptance("F08")
def test_a_kill_within_a_migration_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    folder = folder_with(tmp_path, m0001_a="CREATE TABLE a (id INTEGER); INSERT INTO a VALUES (die());")
    ended = subprocess.run([sys.executable, "-c", MIGRATING, str(path), str(folder)], timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    db = connections.writable(path)
    assert db.table_names() == []
    folder_with(tmp_path, m0001_a="CREATE TABLE a (id INTEGER);")
    schema.migrate(db, folder)
    assert "a" in db.table_names()
    db.close()


# The lock of the data directory

HOLDER = """
import sys
from pathlib import Path
from bot.store.checkpoints import Checkpoints
from bot.store.lock import DataDirLock

with DataDirLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.acceptance("F03")
def test_a_second_process_is_refused_by_number_and_a_killed_one_holds_nothing(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(StoreError, match=rf"already running \(pid {holder.pid}\)"), DataDirLock(tmp_path):
        pass
    holder.kill()
    holder.communicate(timeout=10)
    with DataDirLock(tmp_path):
        assert (tmp_path / "lock").read_text() == str(os.getpid())
    with DataDirLock(tmp_path):
        pass
