"""The only thread that writes, and the one that folds the log into the file.

Waiting jobs are committed together, and each gets its answer once it is on the disk."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bot.errors import TransientError
from bot.store.rows import Database
from bot.store.sqlite import schema
from bot.store.sqlite.schema import Connection

BUDGET_SECONDS = 8.0
"""How long a job may wait for the database; less than GitHub's ten seconds for a delivery."""
_BATCH = 512
_WAITING_AT_MOST = 20_000


class WriteJob:
    """Work, the future for its answer, and how long it may wait."""

    __slots__ = ("deadline", "error", "future", "result", "work")

    def __init__(self, work: Callable[[Database], Any], future: asyncio.Future[Any], deadline: float) -> None:
        self.work = work
        self.future = future
        self.deadline = deadline
        self.result: Any = None
        self.error: BaseException | None = None


class Writer:
    """Takes jobs from any loop; `work` may run more than once, but its changes are stored once."""

    def __init__(self, db: Connection, path: Path, committed: Callable[[], None]) -> None:
        self._db = db
        self._path = path
        self._committed = committed
        self._jobs: queue.SimpleQueue[WriteJob | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Database], Any]) -> asyncio.Future[Any]:
        if self._closed:
            raise TransientError(schema.CLOSED)
        if self._jobs.qsize() > _WAITING_AT_MOST:
            raise TransientError("Too much waits to be stored.", retry_after=5.0)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.put(WriteJob(work, future, time.monotonic() + BUDGET_SECONDS))
        return future

    def close(self) -> None:
        """Write what waits, then end; blocks."""
        if not self._closed:
            self._closed = True
            self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            batch, ended = self._gather()
            if batch:
                self._write(batch)
            if ended:
                return

    def _gather(self) -> tuple[list[WriteJob], bool]:
        """Wait for a job, and take all that wait by then; the flag says that none will follow."""
        batch: list[WriteJob] = []
        job = self._jobs.get()
        while job is not None:
            batch.append(job)
            if len(batch) >= _BATCH:
                return batch, False
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True

    def _write(self, batch: list[WriteJob]) -> None:
        waiting = batch
        while waiting:
            try:
                self._transact(waiting)
            except Exception as error:  # noqa: BLE001 - each caller gets an answer, whatever happened
                waiting = self._after_failure(waiting, error)
            else:
                self._committed()
                _answer(waiting)
                return

    def _after_failure(self, waiting: list[WriteJob], error: Exception) -> list[WriteJob]:
        """Return the jobs to try again: after a lock, those with time left. Else try each alone to find the bad one."""
        if schema.is_busy(error):
            now = time.monotonic()
            self._fail([job for job in waiting if job.deadline <= now], error)
            return [job for job in waiting if job.deadline > now]
        if len(waiting) == 1:
            self._fail(waiting, error)
        else:
            for job in waiting:
                self._write([job])
        return []

    def _fail(self, jobs: Sequence[WriteJob], error: BaseException) -> None:
        for job in jobs:
            job.error = error
        self._translate(jobs)
        _answer(jobs)

    def _transact(self, batch: Sequence[WriteJob]) -> None:
        connection = self._db.conn
        connection.execute("BEGIN IMMEDIATE")
        try:
            for job in batch:
                self._attempt(job, connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite ends it by itself on some errors
                connection.execute("ROLLBACK")
            raise
        self._translate(batch)

    def _attempt(self, job: WriteJob, connection: sqlite3.Connection) -> None:
        job.result = job.error = None
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.work(self._db)
        except BaseException as error:
            if not connection.in_transaction:
                raise
            connection.execute("ROLLBACK TO job")
            job.error = error
        connection.execute("RELEASE job")

    def _translate(self, jobs: Sequence[WriteJob]) -> None:
        for job in jobs:
            if job.error is not None:
                job.error = schema.translate(job.error, self._path)


def _answer(jobs: Sequence[WriteJob]) -> None:
    """Hand results over in each caller's loop, with one wake-up for each loop."""
    loops: dict[asyncio.AbstractEventLoop, list[WriteJob]] = {}
    for job in jobs:
        loops.setdefault(job.future.get_loop(), []).append(job)
    for loop, theirs in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve, theirs)
        except RuntimeError:  # the loop is closed: nobody waits
            continue


def _resolve(jobs: Sequence[WriteJob]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is None:
            job.future.set_result(job.result)
        elif isinstance(job.error, StopIteration):  # a future cannot carry it
            job.future.set_exception(RuntimeError("work raised StopIteration"))
        else:
            job.future.set_exception(job.error)


INTERVAL_SECONDS = 1.0


class Checkpoints:
    """Folds the log into the file; sleeps while nothing is written."""

    def __init__(self, db: Connection, interval_seconds: float = INTERVAL_SECONDS) -> None:
        self._db = db
        self._interval = interval_seconds
        self._dirty = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store-checkpoints", daemon=True)
        self._thread.start()

    def note(self) -> None:
        """Wake up, because something was committed."""
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
            # PASSIVE never waits for readers or the writer. If the disk is full or locked, the next round tries again.
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
