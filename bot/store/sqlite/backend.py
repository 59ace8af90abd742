"""The store in one SQLite file: one writer thread with group commit, readers beside it, a copy and a check of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from bot.errors import StoreError
from bot.store.replicas import Joining
from bot.store.rows import Database
from bot.store.sqlite import schema
from bot.store.sqlite.schema import Connection, Readers
from bot.store.writer import Writer

T = TypeVar("T")


class SqliteBackend:
    def __init__(self, path: Path, *, writable: bool) -> None:
        self._path = path
        self._readers = Readers(path)
        self._writer: Writer | None = None
        if writable:
            self._db = schema.writable(path)
            self._checkpoints = Checkpoints(schema.writable(path))
            self._writer = Writer(SqliteWriting(self._db, path), self._checkpoints.note)

    @property
    def name(self) -> str:
        return str(self._path)

    def submit(self, work: Callable[[Database], Any]) -> asyncio.Future[Any]:
        if self._writer is None:
            raise StoreError(f"{self._path} was opened for reading only.")
        return self._writer.submit(work)

    async def read(self, work: Callable[[Database], T], *, single: bool = False) -> T:
        return await self._readers.read(work)

    async def copy(self, target: Path) -> None:
        await self._readers.read(lambda db: _copy(db, target))

    async def check(self) -> list[str]:
        def work(db: Connection) -> list[str]:
            found = [str(row[0]) for row in db.execute("PRAGMA integrity_check(20)")]
            broken = [f"{row[0]}: row {row[1]} points to nothing" for row in db.execute("PRAGMA foreign_key_check")]
            return [line for line in found if line != "ok"] + broken

        return await self._readers.read(work)

    def join(self, joining: Joining) -> AbstractContextManager[None]:
        return nullcontext()  # the lock on its folder says it already

    def server(self) -> None:
        return None

    def is_claimed(self) -> bool:
        return False

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._readers.close()
        if self._writer is not None:
            self._checkpoints.close()
            self._db.close()


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
            if self._stop.is_set():
                return  # `close` may have set what was just cleared
            # PASSIVE never waits for readers or the writer; a full disk or a lock passes, the next round tries again.
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
