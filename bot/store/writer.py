"""The only thread of a process that writes. Waiting jobs are committed together, and each gets its answer once it is
on the disk. A `WritingConnection` knows the database."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from bot.errors import TransientError
from bot.store.rows import Database

CLOSED = "The store is closed: the service is stopping."
BUDGET_SECONDS = 8.0
"""How long a job may wait for the database; under GitHub's ten seconds for a delivery."""
_BATCH = 512
_WAITING_AT_MOST = 20_000


class CommitUnknown(TransientError):
    """The database was lost in the middle of a commit, and could not be asked since whether it took place."""


class WritingConnection(Protocol):
    """A connection for one thread, which alone changes data while its transaction lasts."""

    def begin(self) -> Database:
        """Take the lock that all writers share."""

    def commit(self) -> None:
        """Return when the transaction is on the disk. An error means that it is not, unless it is a CommitUnknown."""

    def rollback(self) -> None:
        """End the transaction, if there is one."""

    def is_lost(self) -> bool:
        """Tell whether the database itself has ended the transaction."""

    def may_pass(self, error: BaseException) -> bool:
        """Tell whether the same transaction may succeed a moment later."""

    def translate(self, error: BaseException) -> BaseException: ...


class WriteJob:
    """A piece of work, where its answer goes, and how long it may wait."""

    __slots__ = ("deadline", "error", "future", "result", "work")

    def __init__(self, work: Callable[[Database], Any], future: asyncio.Future[Any], deadline: float) -> None:
        self.work = work
        self.future = future
        self.deadline = deadline
        self.result: Any = None
        self.error: BaseException | None = None


class Writer:
    """Takes jobs from any event loop. `work` may run more than once, but changes the database once."""

    def __init__(self, connection: WritingConnection, committed: Callable[[], None] = lambda: None) -> None:
        self._connection = connection
        self._committed = committed
        self._jobs: queue.SimpleQueue[WriteJob | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Database], Any]) -> asyncio.Future[Any]:
        if self._closed:
            raise TransientError(CLOSED)
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
        """Return what waits, at least one job."""
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
            except BaseException as error:  # noqa: BLE001 - whatever happened, each caller gets an answer
                waiting = self._after_failure(waiting, error)
            else:
                self._committed()
                _answer(waiting)
                return

    def _after_failure(self, waiting: list[WriteJob], error: BaseException) -> list[WriteJob]:
        """Return the jobs to try again: after a lock, those with time left; none that may have been committed. Else try
        each alone to find the bad one."""
        if isinstance(error, CommitUnknown):
            self._fail(waiting, error)
            return []
        if self._connection.may_pass(error):
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
        try:
            db = self._connection.begin()
            if len(batch) == 1:  # its failure is that of the whole transaction
                batch[0].result = batch[0].work(db)
            else:
                for job in batch:
                    self._run_job(job, db)
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        self._translate(batch)

    def _run_job(self, job: WriteJob, db: Database) -> None:
        job.result = job.error = None
        db.execute("SAVEPOINT job")
        try:
            job.result = job.work(db)
        except BaseException as error:
            if self._connection.is_lost():
                raise
            db.execute("ROLLBACK TO job")
            job.error = error
        db.execute("RELEASE job")

    def _translate(self, jobs: Sequence[WriteJob]) -> None:
        for job in jobs:
            if job.error is not None:
                job.error = self._connection.translate(job.error)


def _answer(jobs: Sequence[WriteJob]) -> None:
    """Hand results over in the loop of each caller; one wake-up for all that share a loop."""
    loops: dict[asyncio.AbstractEventLoop, list[WriteJob]] = {}
    for job in jobs:
        loops.setdefault(job.future.get_loop(), []).append(job)
    for loop, theirs in loops.items():
        try:
            loop.call_soon_threadsafe(_resolve, theirs)
        except RuntimeError:  # the loop was closed: nobody waits any more
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
