"""Makes connections to PostgreSQL, for the readers and for the one writer with its transaction.

Each writing transaction holds a lock that all processes share, so that they run one after the other, as with SQLite.
After a commit without an answer, we ask for the transaction by its number before we repeat anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus
from psycopg.sql import SQL
from psycopg_pool import ConnectionPool, PoolTimeout

from bot.errors import StoreError, TransientError
from bot.store.postgres import dialect, faults
from bot.store.replicas import Replaced
from bot.store.rows import Cursor, Database
from bot.store.writer import BUDGET_SECONDS, CLOSED, CommitUnknown

T = TypeVar("T")
THREADS = 4
EACH_NEEDS = THREADS + 3
"""The connections of one service: its readers, its writer, its beats and its wire for notices."""

SCHEMA = "bot"
WRITERS = 0x666F7267
"""The key of the advisory lock that writers hold; migrations hold it too."""
SERVICE = WRITERS + 1
"""The key of the lock that running services share, each on a separate connection."""
CONNECT_SECONDS = 5
STATEMENT_SECONDS = 8
STANDSTILL_SECONDS = 5
"""After that the server ends a transaction whose process does nothing: it would keep all writers out."""
_OPTIONS = (
    f"-c search_path={SCHEMA} -c timezone=UTC -c statement_timeout={STATEMENT_SECONDS}s -c lock_timeout=4s"
    f" -c idle_in_transaction_session_timeout={STANDSTILL_SECONDS}s"
)
_PATIENT = f"-c search_path={SCHEMA} -c timezone=UTC -c statement_timeout=0"
_KEEPALIVE = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": STATEMENT_SECONDS * 1000,
}
_RETRY_SECONDS = 0.2
_BEGIN = SQL(
    "BEGIN; SELECT pg_current_xact_id()::text FROM (SELECT pg_advisory_xact_lock({})) AS writer;"
    " SELECT 1 FROM replicas WHERE id = {}"
)
"""One round trip, but statements of their own: the last one sees what was committed before the lock was ours. It is no
pipeline of psycopg's, after which PostgreSQL does not count how long the transaction stands still."""


class _Number(Loader):
    """NUMERIC, which only sums are: a whole number, or a float as in SQLite."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


class Watch:
    """Cuts connections whose work has taken too long. A network that swallows everything says nothing, and PostgreSQL's
    own limits work only where its answers arrive."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._due: dict[int, tuple[float, socket.socket]] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        """Cut the connection if the block outlasts the limit."""
        own = socket.socket(fileno=os.dup(connection.fileno()))
        with self._lock:
            self._due[id(own)] = (time.monotonic() + self._seconds, own)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="store-watch", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                del self._due[id(own)]
            own.close()

    def _run(self) -> None:
        while True:
            time.sleep(1.0)
            with self._lock:
                now = time.monotonic()
                for due, one in self._due.values():
                    if due <= now:
                        with contextlib.suppress(OSError):
                            one.shutdown(socket.SHUT_RDWR)


WATCH = Watch(STATEMENT_SECONDS + 2)


def connect(url: str, *, patient: bool = False, seconds: int = CONNECT_SECONDS) -> psycopg.Connection[Any]:
    """Blocking; raises psycopg.Error. `patient`: statements and transactions may take as long as they need."""
    options = {**_connecting(read_only=False), **({"options": _PATIENT} if patient else {})}
    connection = psycopg.connect(url, autocommit=True, **{**options, "connect_timeout": seconds})
    _configure(connection)
    return connection


def _connecting(*, read_only: bool) -> dict[str, Any]:
    options = _OPTIONS + (" -c default_transaction_read_only=on" if read_only else "")
    return {"connect_timeout": CONNECT_SECONDS, "application_name": "forgehand", "options": options, **_KEEPALIVE}


def _configure(connection: psycopg.Connection[Any]) -> None:
    connection.adapters.register_loader("numeric", _Number)


class Statements(Database):
    """A connection as the nouns of the store see it."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: dict[str, Any] | None = None, /) -> Cursor:
        # The text is ours, whatever its type: only its parameters come from outside.
        return self._connection.execute(dialect.statement(sql).encode(), parameters or {})


class PostgresWriting:
    """The `WritingConnection` to a server. It connects when it is first used, and again when it was cut off."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection[Any] | None = None
        self._transaction = ""
        self._replica: str | None = None
        self._on_replaced: Callable[[], None] = lambda: None
        self._watched = contextlib.ExitStack()

    def fence(self, replica: str, on_replaced: Callable[[], None]) -> None:
        """Write only while this replica has its row."""
        self._on_replaced = on_replaced
        self._replica = replica

    def begin(self) -> Database:
        try:
            return self._begin()
        except psycopg.Error as error:
            if faults.may_pass(error):
                self._drop()
                time.sleep(_RETRY_SECONDS)
            raise

    def _begin(self) -> Database:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._url)
        self._watched.enter_context(WATCH.over(self._connection))
        found = self._connection.execute(_BEGIN.format(WRITERS, self._replica))
        found.nextset()
        (self._transaction,) = found.fetchone() or ("",)
        found.nextset()
        if self._replica is not None and found.fetchone() is None:
            self._on_replaced()
            raise Replaced
        return Statements(self._connection)

    def commit(self) -> None:
        assert self._connection is not None
        try:
            self._connection.execute("COMMIT")
            self._watched.close()
        except psycopg.Error as error:
            if not faults.is_lost(error):
                raise
            self._drop()
            if not self._was_committed():
                raise

    def _was_committed(self) -> bool:
        """Ask for the transaction whose commit was not answered, until somebody knows."""
        deadline = time.monotonic() + BUDGET_SECONDS
        while time.monotonic() < deadline:
            try:
                self._connection = self._connection or connect(self._url)
                found = self._connection.execute("SELECT pg_xact_status(%s::xid8)", (self._transaction,)).fetchone()
                if found is not None and found[0] != "in progress":
                    return bool(found[0] == "committed")
            except psycopg.Error:
                self._drop()
            time.sleep(_RETRY_SECONDS)
        raise CommitUnknown("PostgreSQL was lost while it stored something; nobody knows yet whether it did.", 10.0)

    def rollback(self) -> None:
        try:
            if self._connection is not None and self._connection.info.transaction_status != TransactionStatus.IDLE:
                self._connection.execute("ROLLBACK")
        except psycopg.Error:
            self._drop()
        finally:
            self._watched.close()

    def is_lost(self) -> bool:
        return self._connection is None or self._connection.info.transaction_status in (
            TransactionStatus.IDLE,
            TransactionStatus.UNKNOWN,
        )

    def may_pass(self, error: BaseException) -> bool:
        return faults.may_pass(error)

    def translate(self, error: BaseException) -> BaseException:
        return faults.translate(error)

    def close(self) -> None:
        self._drop()

    def _drop(self) -> None:
        self._watched.close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class PooledReaders:
    """Threads that read, each with a connection of the pool for as long as its work lasts."""

    def __init__(self, url: str) -> None:
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # each try of each connection is a warning there
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="store-reader")
        self._connections: ConnectionPool[psycopg.Connection[Any]] = ConnectionPool(
            url,
            kwargs={**_connecting(read_only=True), "autocommit": True},
            configure=_configure,
            min_size=0,
            max_size=THREADS,
            timeout=CONNECT_SECONDS,
            open=True,
        )
        self._closed = False

    async def read(self, work: Callable[[Database], T], *, single: bool) -> T:
        if self._closed:
            raise TransientError(CLOSED)
        reading = partial(self._read, self._read_once if single else self._read_whole, work)
        return await asyncio.get_running_loop().run_in_executor(self._threads, reading)

    def close(self) -> None:
        """Blocks until the reads under way have ended."""
        self._closed = True
        self._threads.shutdown(wait=True)
        self._connections.close()

    @staticmethod
    def _read(read: Callable[[Callable[[Database], T]], T], work: Callable[[Database], T]) -> T:
        try:
            for _ in range(THREADS):
                try:
                    return read(work)
                except psycopg.Error as error:  # each connection of the pool may be one that was cut since
                    if isinstance(error, PoolTimeout) or not faults.is_lost(error):
                        raise
            return read(work)
        except psycopg.errors.ReadOnlySqlTransaction:
            raise StoreError("The database was opened for reading only.") from None
        except psycopg.Error as error:
            raise faults.translate(error) from None

    def _read_once(self, work: Callable[[Database], T]) -> T:
        with self._connections.connection() as connection, WATCH.over(connection):
            return work(Statements(connection))

    def _read_whole(self, work: Callable[[Database], T]) -> T:
        """All statements see one state."""
        with self._connections.connection() as connection, WATCH.over(connection):
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                return work(Statements(connection))
            finally:
                with contextlib.suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
