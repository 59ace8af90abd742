"""The engine on DBOS; this package alone knows DBOS and SQLAlchemy.

It gets only ids, never a token, because its arguments are pickled to disk. Progress is in our store, so its database
can be lost: `resubmit` submits unfinished turns again. On PostgreSQL, several replicas share the queue, and each turn
has one runner; `adopt` takes over what a dead replica ran."""

from __future__ import annotations

import asyncio
import importlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from bot.engine import database
from bot.engine.protocol import Advance, EngineStatus
from bot.engine.queue import TurnQueue
from bot.errors import TransientError
from bot.loops import Loop
from bot.models import SessionId, TurnKey
from bot.settings.database import Address

if TYPE_CHECKING:
    from dbos import DBOS, DBOSClient, EnqueueOptions
    from sqlalchemy import Engine as SqlEngine

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)

NAME = "forgehand"
QUEUE = "turns"
WORKFLOW = "turn"
VERSION = "forgehand-1"
"""Replicas run only turns of their own version. Change it if new code could not go on with a turn under way."""
ONLY = "local"
"""The name of the executor that has the engine for itself: it continues what it ran in an earlier life."""
POLL_SECONDS = 0.1
QUEUE_SECONDS = 0.25
"""Between two looks into the queue while something may wait there: each takes 2 ms of CPU."""
QUIET_SECONDS = 2.0
"""The same while we have heard of nothing. Notices may be lost."""
SHARE_SECONDS = 0.02
"""Among replicas, each waits so long for each turn that it runs, and takes one at a time: who runs fewest is first."""
BUSY_SECONDS = 5.0
"""For so long after a notice something may wait."""
_LIVE = {"ENQUEUED": EngineStatus.WAITING, "DELAYED": EngineStatus.WAITING, "PENDING": EngineStatus.RUNNING}


class DurableEngine:
    """Runs each turn as a workflow with one step that advances it."""

    def __init__(
        self,
        where: Address,
        advance: Advance,
        *,
        executor: str = ONLY,
        room: int | None = None,
        on_queued: Callable[[], None] | None = None,
    ) -> None:
        """`room`: how many turns this process runs at once, if not all. `on_queued` has every process call `look`."""
        self.queue = Loop("queue", self._look, QUIET_SECONDS)
        self._on_queued = on_queued or self.look
        self._busy_until = 0.0
        self._where = where
        self._advance = advance
        self._executor = executor
        self._room = room
        self._running: dict[TurnKey, asyncio.Task[None]] = {}
        self._draining = False
        self._looking: asyncio.Task[None] | None = None
        self._turns: TurnQueue | None = None
        self._dbos: type[DBOS] | None = None
        self._client: DBOSClient | None = None
        self._sql: SqlEngine | None = None
        self._idle: frozenset[str] = frozenset()
        """Claimed for us and not begun, at the last look."""

    async def start(self) -> None:
        """Launch, and continue what a former process left running."""
        self._loop = asyncio.get_running_loop()
        dbos = (await asyncio.to_thread(importlib.import_module, "dbos")).DBOS
        dbos.destroy(destroy_registry=True)
        _take_over_logger()
        self._sql = await asyncio.to_thread(database.opened, self._where)
        instance = dbos(
            config={
                "name": NAME,
                "system_database_engine": self._sql,
                "dbos_system_schema": database.SCHEMA,
                "application_version": VERSION,
                "executor_id": self._executor,
                "max_executor_threads": 32,
                "log_level": "ERROR",
                "enable_otlp": False,
                # DBOS ends only after the sleeps of a listener and a notifier that we do not use.
                "notification_listener_polling_interval_sec": POLL_SECONDS,
                "notification_coalesce_sec": POLL_SECONDS,
            }
        )
        _take_over_logger()
        self._define(dbos)
        self._dbos = dbos
        await asyncio.to_thread(self._launch, instance, self._sql)
        self.look()
        self._looking = asyncio.create_task(self.queue.run())

    def _launch(self, dbos: DBOS, sql: SqlEngine) -> None:
        # Only DBOS' blocking calls, each from a thread: its async ones replace our loop's default executor by its own
        # pool, which dies with it.
        from dbos import DBOSClient

        url = database.url_of(self._where).render_as_string(hide_password=False)
        dbos.migrate(url, schema=database.SCHEMA)
        self._client = DBOSClient(
            system_database_engine=sql,
            dbos_system_schema=database.SCHEMA,
            application_name=NAME,
            retry_connection_errors=False,  # it would wait up to a minute more after the database is back
        )
        queue = self._client.register_queue(QUEUE, partition_concurrency=1)
        self._turns = TurnQueue(dbos, self._client, queue, executor=self._executor, version=VERSION, room=self._room)
        dbos.listen_queues([])
        dbos.launch()
        self._turns.quieten()

    def _define(self, dbos: type[DBOS]) -> None:
        @dbos.step(name="advance")
        async def advance(session: str, n: int) -> None:
            # DBOS runs queued coroutines on its own loop; the turn's clients and locks live on ours.
            key = TurnKey(SessionId(session), n)
            future = asyncio.run_coroutine_threadsafe(self._run(key), self._loop)
            await asyncio.wrap_future(future)

        @dbos.workflow(name=WORKFLOW)
        async def turn(session: str, n: int) -> None:
            await advance(session, n)

    def look(self) -> None:
        """Take turns from the queue soon, because some may wait there."""
        self._busy_until = time.monotonic() + BUSY_SECONDS
        self.queue.wake()

    async def _look(self) -> float:
        if self._draining:
            return QUIET_SECONDS
        if self._room is None:
            await _asked(self._taking().take)
        else:
            share = self._taking().load + secrets.randbelow(100) / 100
            await asyncio.sleep(min(QUEUE_SECONDS, SHARE_SECONDS * share))
            if await _asked(self._taking().take, 1):
                return 0.0
        now = time.monotonic()
        return QUEUE_SECONDS if now < self._busy_until else QUIET_SECONDS

    async def _run(self, key: TurnKey) -> None:
        if not await self._is_ours(key) or key in self._running:
            self._taking().left(key.workflow_id)
            await asyncio.Event().wait()  # it begins so late that its turn was queued again
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
            self._taking().left(key.workflow_id)
            self.look()  # there is room

    async def _is_ours(self, key: TurnKey) -> bool:
        while True:
            try:
                return await _asked(self._has_claimed, key)
            except TransientError:
                await asyncio.sleep(QUEUE_SECONDS)

    def _has_claimed(self, key: TurnKey) -> bool:
        found = self._asking().list_workflows(workflow_ids=[key.workflow_id], load_input=False, load_output=False)
        return [(one.status, one.executor_id) for one in found] == [("PENDING", self._executor)]

    @property
    def running(self) -> int:
        """Count the turns that this process runs."""
        return len(self._running)

    async def submit(self, key: TurnKey, thread: str) -> None:
        await _asked(self._enqueue, key, thread)
        self._on_queued()

    def _enqueue(self, key: TurnKey, thread: str) -> None:
        client = self._asking()
        if self._look_up(key) is EngineStatus.ENDED:
            client.delete_workflow(key.workflow_id)
        options: EnqueueOptions = {
            "queue_name": QUEUE,
            "workflow_name": WORKFLOW,
            "workflow_id": key.workflow_id,
            "queue_partition_key": thread,
            "app_version": VERSION,
        }
        client.enqueue(options, str(key.session), key.n)

    async def status(self, key: TurnKey) -> EngineStatus:
        return await _asked(self._look_up, key)

    def _look_up(self, key: TurnKey) -> EngineStatus:
        found = self._asking().list_workflows(workflow_ids=[key.workflow_id], load_input=False, load_output=False)
        if not found:
            return EngineStatus.ABSENT
        return _LIVE.get(found[0].status, EngineStatus.ENDED)

    async def resubmit(self, turns: list[tuple[TurnKey, str]]) -> int:
        resubmitted = 0
        for key, thread in turns:
            if await self.status(key) in (EngineStatus.ABSENT, EngineStatus.ENDED):
                await self.submit(key, thread)
                resubmitted += 1
        return resubmitted

    async def adopt(self, living: Callable[[], Awaitable[frozenset[str]]]) -> int:
        """Queue again what replicas run that no longer live; return how many replicas that are. Safe to repeat, and
        beside others: DBOS admits one runner for each turn.

        `living` is called after a look at who runs something, so that nobody is missed who has just begun."""
        claimed = await _asked(self._taking().claimed)
        there = await living()
        await self._queue_again({name: owner for name, owner in claimed.items() if owner not in there})
        return len({owner for owner in claimed.values() if owner not in there})

    async def reclaim(self) -> int:
        """Queue again what the database says we run and we do not: the answer to our claim was lost. Return how many
        turns that are. Two looks must find the same, because we may be about to begin."""
        claimed = await _asked(self._taking().claimed)
        begun = {key.workflow_id for key in self._running}
        idle = {name: owner for name, owner in claimed.items() if owner == self._executor and name not in begun}
        lost = {name: owner for name, owner in idle.items() if name in self._idle}
        self._idle = frozenset(idle) - frozenset(lost)
        await self._queue_again(lost)
        return len(lost)

    async def _queue_again(self, left: dict[str, str]) -> None:
        if left:
            await _asked(self._taking().queue_again, left)
            self._on_queued()

    async def drain(self) -> None:
        self._draining = True
        if self._looking is not None:
            self._looking.cancel()
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        if self._dbos is not None:
            await asyncio.to_thread(self._dbos.destroy, workflow_completion_timeout_sec=0)
            self._dbos = None
        if self._client is not None:
            await asyncio.to_thread(self._client.destroy)
            self._client = None
        if self._sql is not None:
            await asyncio.to_thread(self._sql.dispose)

    def _taking(self) -> TurnQueue:
        assert self._turns is not None, "the engine was not started"
        return self._turns

    def _asking(self) -> DBOSClient:
        assert self._client is not None, "the engine was not started"
        return self._client


async def _asked(ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Ask in a thread; a database that does not answer is an error that passes."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        return await asyncio.to_thread(ask, *args, **kwargs)
    except SQLAlchemyError as error:
        raise TransientError(f"The engine's database does not answer ({type(error).__name__}).", 5.0) from None


def _take_over_logger() -> None:
    """Remove DBOS' own handler, which bypasses the redactor and keeps a stream that may be closed."""
    logger = logging.getLogger("dbos")
    logger.handlers.clear()
    logger.propagate = True
