"""Reading in threads: each has a connection of its own and sees one committed state per piece of work."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from bot.errors import TransientError
from bot.store import connections, faults
from bot.store.rows import Database

T = TypeVar("T")
THREADS = 4


class Readers:
    """Threads and connections are made when they are first needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="store-reader")
        self._own = threading.local()
        self._all: list[Database] = []
        self._closed = False

    async def read(self, work: Callable[[Database], T]) -> T:
        if self._closed:
            raise TransientError(faults.CLOSED)
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, work)

    def close(self) -> None:
        """Blocks until the reads under way have ended."""
        self._closed = True
        self._pool.shutdown(wait=True)
        for db in self._all:
            db.close()

    def _read(self, work: Callable[[Database], T]) -> T:
        try:
            db = self._connection()
            db.execute("BEGIN")  # one snapshot for all statements of the work
            try:
                return work(db)
            finally:
                with contextlib.suppress(sqlite3.Error):
                    db.rollback()
        except sqlite3.Error as error:
            raise faults.translate(error, self._path) from error

    def _connection(self) -> Database:
        db: Database | None = getattr(self._own, "db", None)
        if db is None:
            db = self._own.db = connections.readable(self._path)
            self._all.append(db)
        return db
