"""Folds the write-ahead log into the database about every second, on a connection of its own: no commit waits."""

from __future__ import annotations

import contextlib
import sqlite3
import threading

from bot.store.rows import Database

INTERVAL_SECONDS = 1.0


class Checkpoints:
    """Sleeps while nothing is written."""

    def __init__(self, db: Database, interval_seconds: float = INTERVAL_SECONDS) -> None:
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
