"""The engine on DBOS, embedded on its own SQLite file; this package alone knows DBOS and SQLAlchemy.

It gets only ids, never a token, because its arguments are pickled to disk. Progress is in our store, so `engine.db` can
be lost: `resubmit` submits unfinished turns again."""

from __future__ import annotations

import asyncio
import importlib
import logging
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot.engine.protocol import Advance, EngineStatus
from bot.models import SessionId, TurnKey

if TYPE_CHECKING:
    from dbos import DBOS
    from sqlalchemy import Engine as SqlEngine

log = logging.getLogger(__name__)

NAME = "forgehand"
QUEUE = "turns"
POLL_SECONDS = 0.1
QUEUE_SECONDS = 0.25
"""The queue's polling interval: each look takes 2 ms of CPU, even in an idle service."""
_LIVE = {"ENQUEUED": EngineStatus.WAITING, "DELAYED": EngineStatus.WAITING, "PENDING": EngineStatus.RUNNING}


class DurableEngine:
    """Runs each turn as a workflow with one step that advances it."""

    def __init__(self, path: Path, advance: Advance) -> None:
        self._path = path
        self._advance = advance
        self._running: dict[TurnKey, asyncio.Task[None]] = {}
        self._draining = False
        self._dbos: type[DBOS] | None = None
        self._workflow: Any = None
        self._sql: SqlEngine | None = None

    async def start(self) -> None:
        """Launch, and continue what a former process left running."""
        self._loop = asyncio.get_running_loop()
        dbos = (await asyncio.to_thread(importlib.import_module, "dbos")).DBOS
        dbos.destroy(destroy_registry=True)
        _take_over_logger()
        await asyncio.to_thread(_set_aside_if_spoilt, self._path)
        self._sql = _sqlite_engine(self._path)
        dbos(
            config={
                "name": NAME,
                "system_database_engine": self._sql,
                "application_version": "forgehand-1",
                "executor_id": "local",
                "max_executor_threads": 32,
                "log_level": "ERROR",
                "enable_otlp": False,
                # DBOS ends only after the sleep of a listener that we do not use.
                "notification_listener_polling_interval_sec": POLL_SECONDS,
            }
        )
        _take_over_logger()
        self._workflow = self._define(dbos)
        self._dbos = dbos
        await asyncio.to_thread(self._launch, dbos, self._sql)

    def _launch(self, dbos: type[DBOS], sql: SqlEngine) -> None:
        # Only DBOS' blocking calls, each from a thread: its async ones replace our loop's default executor by its own
        # pool, which dies with it.
        from dbos import DBOSClient

        # Register the queue before the launch: DBOS would find a later one only a second later.
        dbos.migrate(f"sqlite:///{self._path}")
        client = DBOSClient(system_database_engine=sql, application_name=NAME)
        client.register_queue(QUEUE, partition_concurrency=1, polling_interval_sec=QUEUE_SECONDS)
        client.destroy()
        dbos.launch()

    def _define(self, dbos: type[DBOS]) -> Any:
        @dbos.step(name="advance")
        async def advance(session: str, n: int) -> None:
            # DBOS runs queued coroutines on its own loop; the turn's clients and locks live on ours.
            key = TurnKey(SessionId(session), n)
            future = asyncio.run_coroutine_threadsafe(self._run(key), self._loop)
            await asyncio.wrap_future(future)

        @dbos.workflow(name="turn")
        async def turn(session: str, n: int) -> None:
            await advance(session, n)

        return turn

    async def _run(self, key: TurnKey) -> None:
        task = asyncio.ensure_future(self._advance(key))
        self._running[key] = task
        try:
            if not self._draining:
                await asyncio.wait({task})
            if self._draining:
                task.cancel()
                await asyncio.wait({task})
                # Never return: so the workflow stays pending in engine.db, and the next process recovers it.
                await asyncio.Event().wait()
            task.result()
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            self._running.pop(key, None)

    async def submit(self, key: TurnKey, thread: str) -> None:
        await asyncio.to_thread(self._enqueue, key, thread)

    def _enqueue(self, key: TurnKey, thread: str) -> None:
        from dbos import SetEnqueueOptions, SetWorkflowID

        dbos = self._launched()
        if self._look_up(key) is EngineStatus.ENDED:
            dbos.delete_workflow(key.workflow_id)
        with SetWorkflowID(key.workflow_id), SetEnqueueOptions(queue_partition_key=thread):
            dbos.enqueue_workflow(QUEUE, self._workflow, str(key.session), key.n)

    async def status(self, key: TurnKey) -> EngineStatus:
        return await asyncio.to_thread(self._look_up, key)

    def _look_up(self, key: TurnKey) -> EngineStatus:
        found = self._launched().get_workflow_status(key.workflow_id)
        if found is None:
            return EngineStatus.ABSENT
        return _LIVE.get(found.status, EngineStatus.ENDED)

    async def resubmit(self, turns: list[tuple[TurnKey, str]]) -> int:
        resubmitted = 0
        for key, thread in turns:
            if await self.status(key) in (EngineStatus.ABSENT, EngineStatus.ENDED):
                await self.submit(key, thread)
                resubmitted += 1
        return resubmitted

    async def drain(self) -> None:
        self._draining = True
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        if self._dbos is not None:
            await asyncio.to_thread(self._dbos.destroy, workflow_completion_timeout_sec=0)
            self._dbos = None
        if self._sql is not None:
            await asyncio.to_thread(self._sql.dispose)

    def _launched(self) -> type[DBOS]:
        assert self._dbos is not None, "the engine was not started"
        return self._dbos


def _take_over_logger() -> None:
    """Remove DBOS' own handler, which bypasses the redactor and keeps a stream that may be closed."""
    logger = logging.getLogger("dbos")
    logger.handlers.clear()
    logger.propagate = True


def _set_aside_if_spoilt(path: Path) -> None:
    """Replace a damaged file by a new one: its data may be lost, but the service must start."""
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(path, timeout=30.0)) as db:
            sound = db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.OperationalError:
        raise  # locked or no space: that says nothing about its data
    except sqlite3.DatabaseError:
        sound = False
    if not sound:
        log.error("engine.db is damaged: it is set aside, and unfinished turns start again from the store")
        for suffix in ("", "-wal", "-shm"):
            file = path.with_name(path.name + suffix)
            if file.exists():
                file.replace(path.with_name(f"{path.name}.damaged{suffix}"))


def _sqlite_engine(path: Path) -> SqlEngine:
    import sqlalchemy

    path.touch(mode=0o600)
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", pool_size=8, max_overflow=8)

    @sqlalchemy.event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = "IMMEDIATE"
        connection.execute("PRAGMA busy_timeout=30000")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        if sqlite3.sqlite_version_info < (3, 42):
            # DBOS stamps its rows with unixepoch('subsec'), which older SQLite answers with NULL.
            connection.create_function("unixepoch", -1, lambda *_: time.time())

    return engine
