"""What writes to the file beside its readers: the transaction of the one writer, and the thread that folds the log."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path

from bot.store.rows import Database
from bot.store.sqlite import schema
from bot.store.sqlite.schema import Connection

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
