"""Opens SQLite connections, and migrates the schema by numbered files, forward only.

To change the schema, add the next number (`0002_noun.sql`); never edit a released file. A migration keeps every row and
moves data in SQL that PostgreSQL understands too; all waiting ones run in one transaction. Put rows written with the
schema before it into `tests/data/migrations` under that schema's name: the tests apply each migration to them."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from urllib.parse import quote

from bot.errors import BotError, StoreError, TransientError
from bot.store import migrations, writer

if TYPE_CHECKING:
    import sqlite_utils
    from sqlite_utils import Migrations

Connection: TypeAlias = "sqlite_utils.Database"
"""Only a name at run time: the library is loaded when a file is first opened."""
BUSY_MILLISECONDS = 250
"""Short, because the writer has its own time limit and has to look at new jobs in between."""
_EMERGENCY_CHECKPOINT_PAGES = 16_384
"""64 MB, in case the background checkpoint fails."""
_WAL_LIMIT_BYTES = 64 * 1024 * 1024


def writable(path: Path) -> Connection:
    """Open the writer's connection: a commit returns when its bytes are on the disk."""
    db = _connect(path, "rw")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute(f"PRAGMA wal_autocheckpoint = {_EMERGENCY_CHECKPOINT_PAGES}")
    db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
    return db


def readable(path: Path, *, busy_milliseconds: int = 8_000) -> Connection:
    """Open a connection that sees what is committed, changes nothing, and does not fold the log into the file."""
    db = _connect(path, "ro")
    db.execute("PRAGMA query_only = ON")
    db.execute(f"PRAGMA busy_timeout = {busy_milliseconds}")
    return db


def _connect(path: Path, mode: str) -> Connection:
    from sqlite_utils import Database

    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=BUSY_MILLISECONDS / 1000,
        isolation_level=None,  # no implicit transactions: all of ours are IMMEDIATE
        check_same_thread=False,  # another thread closes it
        cached_statements=512,
    )
    try:
        connection.execute("SELECT FLOOR(0.5)")
    except sqlite3.OperationalError:  # built without the mathematical functions
        connection.create_function("FLOOR", 1, math.floor, deterministic=True)
    return Database(connection, recursive_triggers=False, execute_plugins=False)


_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_DENIED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_STARVED = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CANTOPEN}


def code_of(error: BaseException) -> int:
    """Return SQLite's primary result code; 0 for other errors."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def is_busy(error: BaseException) -> bool:
    return code_of(error) in _BUSY


def corrupt(path: Path) -> StoreError:
    return StoreError(
        f"{path} is damaged and was left as it is. Run `sqlite3 {path} 'PRAGMA quick_check'` to see how, then restore "
        "a backup made with `forgehand db backup`."
    )


def not_writable(path: Path) -> StoreError:
    return StoreError(f"{path} cannot be written to. Give the service's user write permission: chmod u+w {path}")


def translate(error: BaseException, path: Path) -> BaseException:
    """Return our error for a problem of the machine, and any other error (a broken constraint, a bug) as it is."""
    code = code_of(error)
    if isinstance(error, BotError) or not isinstance(error, sqlite3.Error):
        return error
    if code in _BUSY:
        return TransientError(f"{path.name} is locked by another process.", retry_after=5.0)
    if code in _STARVED:
        return TransientError(f"{path.name} cannot be used at the moment: is the disk full?", retry_after=30.0)
    if code in _CORRUPT:
        return corrupt(path)
    if code in _DENIED:
        return not_writable(path)
    return error


T = TypeVar("T")
THREADS = 4


class Readers:
    """Reading threads, each with its connection, created when first needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="store-reader")
        self._own = threading.local()
        self._all: list[Connection] = []
        self._closed = False

    async def read(self, work: Callable[[Connection], T]) -> T:
        if self._closed:
            raise TransientError(writer.CLOSED)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, work)

    def close(self) -> None:
        """Close, after the reads under way have ended; blocks."""
        self._closed = True
        self._pool.shutdown(wait=True)
        for db in self._all:
            db.close()

    def _read(self, work: Callable[[Connection], T]) -> T:
        try:
            db: Connection | None = getattr(self._own, "db", None)
            if db is None:
                db = self._own.db = readable(self._path)
                self._all.append(db)
            db.execute("BEGIN")  # one snapshot for all statements of the work
            try:
                return work(db)
            finally:
                with contextlib.suppress(sqlite3.Error):
                    db.rollback()
        except sqlite3.Error as error:
            raise translate(error, self._path) from error


SET_NAME = "forgehand"
_CHECK_AT_MOST_BYTES = 256 * 1024 * 1024
"""A quick_check reads the whole file; for larger ones, use `forgehand db check`."""


def inspect(path: Path, folder: Path = migrations.FOLDER, *, whole: bool = True) -> bool:
    """Tell whether migrations wait, without changing anything; StoreError for a file that we must not touch."""
    if path.stat().st_size == 0:
        return True
    try:
        with contextlib.closing(readable(path)) as db:
            return _inspect(db, path, folder, whole=whole)
    except sqlite3.Error as error:
        translated = translate(error, path)
        raise StoreError(f"{path} cannot be opened: {error}.") if translated is error else translated from None


def migrate(db: Connection, folder: Path = migrations.FOLDER) -> None:
    """Apply all that wait in one transaction: an interruption undoes all of them."""
    ours = _migrations(folder)
    db.execute("BEGIN IMMEDIATE")
    try:
        ours.apply(db)
        db.execute("COMMIT")
    except BaseException:
        db.rollback()
        raise


def tables() -> dict[str, tuple[str, ...]]:
    """Return the tables that last, in the order of the schema, each with its primary key."""
    from sqlite_utils import Database

    with contextlib.closing(Database(sqlite3.connect(":memory:", isolation_level=None))) as db:
        migrate(db)
        return {one.name: tuple(one.pks) for one in db.tables if not one.name.startswith(("_", "sqlite_", "replicas"))}


def _inspect(db: Connection, path: Path, folder: Path, *, whole: bool) -> bool:
    applied = {one.name for one in _migrations(folder).applied(db)}
    if whole and path.stat().st_size <= _CHECK_AT_MOST_BYTES:
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise corrupt(path)
    waiting = migrations.waiting(applied, path, folder)
    if not applied and db.table_names():
        raise StoreError(f"{path} is a database of another program. Set FORGEHAND_DATA_DIR to a folder of its own.")
    return waiting


def _migrations(folder: Path) -> Migrations:
    from sqlite_utils import Migrations

    ours = Migrations(SET_NAME)
    for one in migrations.known(folder):
        ours(name=one.name)(_applying(one.sql))
    return ours


def _applying(sql: str) -> Callable[[Connection], None]:
    def apply(db: Connection) -> None:
        for statement in _statements(sql):
            db.execute(statement)

    return apply


def _statements(script: str) -> Iterator[str]:
    """Split a script. `executescript` is slow: it asks SQLite after every letter whether a statement is complete."""
    statement = ""
    for piece in re.split("(?<=;)", script):
        statement += piece
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
