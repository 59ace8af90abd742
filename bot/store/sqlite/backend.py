"""The store in one SQLite file: one writer thread with group commit, readers beside it, a copy and a check of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self, TypeVar

from bot.errors import StoreError
from bot.store import data_directory
from bot.store.rows import Database
from bot.store.sqlite import schema
from bot.store.sqlite.schema import Connection, Readers
from bot.store.writer import Writer

T = TypeVar("T")
_SIDE_FILES = ("-wal", "-shm")


class SqliteBackend:
    def __init__(self, path: Path, *, writable: bool) -> None:
        self._path = path
        self._readers = Readers(path)
        self._writer: Writer | None = None
        if writable:
            self._db = schema.writable(path)
            self._checkpoints = Checkpoints(schema.writable(path))
            self._writer = Writer(SqliteWriting(self._db, path), self._checkpoints.note)

    @classmethod
    def open(cls, path: Path, *, migrate: bool) -> Self:
        mark = path.with_name(path.name + ".created")
        if migrate:
            data_directory.prepare(path.parent, known=(path.name, mark.name, "lock"))
        _refuse_if_lost(path, mark if migrate else path)
        try:
            _prepare_file(path)
            waiting = schema.inspect(path)
            if waiting and not migrate:
                raise _older(path)
            if waiting:
                with closing(schema.writable(path)) as db:
                    db.execute("PRAGMA busy_timeout = 8000")
                    schema.migrate(db)
            mark.touch(mode=0o600)
            return cls(path, writable=True)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{path} cannot be opened: {schema.translate(error, path)}") from None

    @classmethod
    def open_reader(cls, path: Path) -> Self:
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise _missing(path) from None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}. Run this as the service's user.") from None
        _require_file(path)
        if schema.inspect(path, whole=False):
            raise _older(path)
        return cls(path, writable=False)

    @property
    def name(self) -> str:
        return str(self._path)

    def submit(self, work: Callable[[Database], Any]) -> asyncio.Future[Any]:
        if self._writer is None:
            raise StoreError(f"{self._path} was opened for reading only.")
        return self._writer.submit(work)

    async def read(self, work: Callable[[Database], T]) -> T:
        return await self._readers.read(work)

    async def copy(self, target: Path) -> None:
        await self._readers.read(lambda db: _copy(db, target))

    async def check(self) -> list[str]:
        def work(db: Connection) -> list[str]:
            found = [str(row[0]) for row in db.execute("PRAGMA integrity_check(20)")]
            broken = [f"{row[0]}: row {row[1]} points to nothing" for row in db.execute("PRAGMA foreign_key_check")]
            return [line for line in found if line != "ok"] + broken

        return await self._readers.read(work)

    def claim(self) -> AbstractContextManager[None]:
        return nullcontext()  # the lock on its folder says it already

    def is_claimed(self) -> bool:
        return False

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._readers.close()
        if self._writer is not None:
            self._checkpoints.close()
            self._db.close()


def peek(path: Path, work: Callable[[Database], T]) -> T | None:
    """Run `work` on a file that is not open yet; None if it cannot be read: `open` will say why."""
    if not path.is_file() or path.stat().st_size == 0:
        return None
    try:
        with closing(schema.readable(path)) as db:
            return work(db)
    except sqlite3.Error:
        return None


@contextmanager
def snapshot(path: Path) -> Iterator[Database]:
    if not path.exists():
        raise _missing(path)
    _require_file(path)
    if schema.inspect(path):
        raise _older(path)
    with _translated(path), closing(schema.readable(path)) as db:
        db.execute("BEGIN")
        yield db


@contextmanager
def filling(path: Path) -> Iterator[Database]:
    """Fill a file beside the target, which gets its name when it is whole."""
    incoming = path.with_name(path.name + ".incoming")
    with _translated(path):
        if os.path.lexists(path):
            raise StoreError(f"{path} exists already. Choose a new file.")
        incoming.unlink(missing_ok=True)
        _prepare_file(incoming)
        try:
            with closing(schema.writable(incoming)) as db:
                schema.migrate(db)
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
                db.execute("PRAGMA journal_mode = DELETE")
            os.link(incoming, path)  # fails if the target has appeared
        finally:
            incoming.unlink(missing_ok=True)


def retire(path: Path) -> None:
    with _translated(path):
        with closing(schema.writable(path)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        path.rename(_moved(path))


def _moved(path: Path) -> Path:
    return path.with_name(path.name + ".moved")


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"{path} cannot be used: {schema.translate(error, path)}") from None


def _copy(db: Connection, target: Path) -> None:
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StoreError(f"The backup cannot be written to {target}: {error.strerror}.") from None
    try:
        with closing(sqlite3.connect(target)) as copy:
            db.conn.backup(copy)
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        raise StoreError(f"The backup to {target} failed: {error}.") from None


def _prepare_file(path: Path) -> None:
    """Check an existing file, or create an empty one; make it private."""
    if os.path.lexists(path):
        _require_file(path)
        if not path.stat().st_mode & stat.S_IWUSR or not os.access(path, os.W_OK):
            raise schema.not_writable(path)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    for file in (path, *(path.with_name(path.name + suffix) for suffix in _SIDE_FILES)):
        if file.exists() and stat.S_IMODE(file.stat().st_mode) & 0o177:
            file.chmod(0o600)


def _require_file(path: Path) -> None:
    if path.is_symlink() or not path.is_file():
        raise StoreError(f"{path} is not a regular file. Move it away or set FORGEHAND_DATA_DIR to another folder.")
    data_directory.require_ours(path)


def _refuse_if_lost(path: Path, evidence: Path) -> None:
    """Refuse to replace a lost database by an empty one, which would forget every session."""
    if path.exists():
        return
    if _moved(path).exists():
        raise StoreError(
            f"This store was moved to PostgreSQL: set FORGEHAND_DATABASE_URL. To go back to its state before the move, "
            f"rename {_moved(path)} to {path.name}."
        )
    if evidence == path:
        raise _missing(path)
    if evidence.exists() or path.with_name(path.name + "-wal").exists():
        raise StoreError(
            f"{path} is missing although Forgehand ran here before. Restore it from a backup made with "
            f"`forgehand db backup`, or remove {evidence} and {path}-wal to start over."
        )


def _missing(path: Path) -> StoreError:
    return StoreError(f"There is no {path} yet: start `forgehand serve` once, or set FORGEHAND_DATA_DIR to its folder.")


def _older(path: Path) -> StoreError:
    return StoreError(f"{path} is of an older version: start `forgehand serve` once, it brings it up to date.")


INTERVAL_SECONDS = 1.0


class SqliteWriting:
    """The `WritingConnection` of a file."""

    def __init__(self, db: Connection, path: Path) -> None:
        self._db = db
        self._path = path

    def begin(self) -> Database:
        self._db.conn.execute("BEGIN IMMEDIATE")
        return self._db

    def commit(self) -> None:
        self._db.conn.execute("COMMIT")

    def rollback(self) -> None:
        if not self.is_lost():
            self._db.conn.execute("ROLLBACK")

    def is_lost(self) -> bool:
        return not self._db.conn.in_transaction  # SQLite ends it by itself on some errors

    def may_pass(self, error: BaseException) -> bool:
        return schema.is_busy(error)

    def translate(self, error: BaseException) -> BaseException:
        return schema.translate(error, self._path)


class Checkpoints:
    """Sleeps while nothing is written."""

    def __init__(self, db: Connection, interval_seconds: float = INTERVAL_SECONDS) -> None:
        self._db = db
        self._interval = interval_seconds
        self._dirty = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store-checkpoints", daemon=True)
        self._thread.start()

    def note(self) -> None:
        """Something was committed."""
        self._dirty.set()

    def close(self) -> None:
        self._stop.set()
        self._dirty.set()
        self._thread.join()
        self._db.close()

    def _run(self) -> None:
        while True:
            self._dirty.wait()
            if self._stop.wait(self._interval):
                return
            self._dirty.clear()
            # PASSIVE never waits for readers or the writer; a full disk or a lock passes, the next round tries again.
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
