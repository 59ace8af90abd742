"""The store in a PostgreSQL database; one service at a time has it, and commands may write beside that service."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import psycopg

from bot.errors import StoreError
from bot.settings import Secret
from bot.store.data_directory import Occupied
from bot.store.postgres import faults, schema
from bot.store.postgres.connections import SERVICE, WRITERS, PooledReaders, PostgresWriting, Statements, connect
from bot.store.rows import CHUNK_BYTES, Database, many
from bot.store.writer import Writer

T = TypeVar("T")
_INCOMPLETE = """
SELECT 'the stored file ' || name || ' is incomplete' AS problem FROM files
WHERE (SELECT COUNT(*) FROM file_chunks WHERE file_chunks.version = files.version) <> CEIL(size * 1.0 / :chunk)
ORDER BY name
"""
UNREACHABLE = (
    "FORGEHAND_DATABASE_URL: PostgreSQL cannot be reached, or refuses this user or database. Check that it runs; psql "
    "with the same URL says more."
)


class PostgresBackend:
    def __init__(self, url: str, name: str, *, writable: bool) -> None:
        """Blocking; for `open` and `open_reader`."""
        self.name = name
        self._url = url
        self._readers = PooledReaders(url)
        self._writing = PostgresWriting(url) if writable else None
        self._writer = Writer(self._writing) if self._writing is not None else None

    @classmethod
    def open(cls, url: str, *, migrate: bool) -> Self:
        return cls(url, _prepare(url, migrate=migrate), writable=True)

    @classmethod
    def open_reader(cls, url: str) -> Self:
        return cls(url, _prepare(url, migrate=False), writable=False)

    def submit(self, work: Callable[[Database], Any]) -> asyncio.Future[Any]:
        if self._writer is None:
            raise StoreError("The database was opened for reading only.")
        return self._writer.submit(work)

    async def read(self, work: Callable[[Database], T]) -> T:
        return await self._readers.read(work)

    async def copy(self, target: Path) -> None:
        """The copy is a file of SQLite's."""
        from bot.store import relocation

        await asyncio.to_thread(relocation.copy, Secret(self._url), target)

    async def check(self) -> list[str]:
        """Look for files with missing chunks; PostgreSQL itself watches over keys and references."""
        return await self._readers.read(lambda db: [row["problem"] for row in many(db, _INCOMPLETE, chunk=CHUNK_BYTES)])

    @contextmanager
    def claim(self) -> Iterator[None]:
        """The lock ends with its connection. Our writer notices at its next write that another service has taken it."""
        assert self._writing is not None
        service = uuid.uuid4().hex
        with _held(self._url) as lock:
            with lock.transaction():
                lock.execute("SELECT pg_advisory_xact_lock(%s)", (WRITERS,))
                lock.execute("DELETE FROM services")
                insert = "INSERT INTO services (id, host, started_at) VALUES (%s, %s, extract(epoch FROM now()))"
                lock.execute(insert, (service, socket.gethostname()))
            self._writing.service = service
            yield
            self._writing.service = None

    def is_claimed(self) -> bool:
        with _connected(self._url) as connection:
            return schema.is_claimed(connection)

    @staticmethod
    @contextmanager
    def unused(url: str) -> Iterator[None]:
        with _held(url):
            yield

    @staticmethod
    @contextmanager
    def snapshot(url: str) -> Iterator[Database]:
        with _connected(url, patient=True) as connection:
            where = _name_of(connection)
            if schema.inspect(connection, where):
                raise _older(where)
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield Statements(connection)

    @staticmethod
    @contextmanager
    def filling(url: str) -> Iterator[Database]:
        _prepare(url, migrate=True, alone=True)
        with _connected(url, patient=True) as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (WRITERS,))
            yield Statements(connection)

    @staticmethod
    def retire(url: str) -> None:
        with _connected(url) as connection:
            schema.retire(connection)

    @staticmethod
    def exists(url: str) -> bool:
        with _connected(url) as connection:
            return schema.exists(connection)

    @staticmethod
    def peek(url: str, work: Callable[[Database], T]) -> T | None:
        with _connected(url) as connection:
            return work(Statements(connection)) if schema.exists(connection) else None

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._readers.close()
        if self._writing is not None:
            self._writing.close()


def _prepare(url: str, *, migrate: bool, alone: bool = False) -> str:
    """Bring the schema up to date if that is asked for; return the name of the database.

    `alone`: the caller keeps services out."""
    with _connected(url) as connection:
        where = _name_of(connection)
        waiting = schema.inspect(connection, where)
        if waiting and not migrate:
            raise _older(where)
        if waiting:
            schema.migrate(connection, where, alone=alone)
    return where


@contextmanager
def _held(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Hold the lock of the one service that may run on a database."""
    with _connected(url) as lock:
        taken = lock.execute("SELECT pg_try_advisory_lock(%s)", (SERVICE,)).fetchone()
        if taken != (True,):
            hosts = "SELECT host FROM services ORDER BY started_at DESC"
            running = lock.execute(hosts).fetchone() if schema.exists(lock) else None
            where = f" on {running[0]}" if running else ""
            raise Occupied(f"Forgehand is already running{where} with {_name_of(lock)}. Stop it first.")
        yield lock


def _older(where: str) -> StoreError:
    return StoreError(f"{where} has an older schema, or none: start `forgehand serve` once, it brings it up to date.")


@contextmanager
def _connected(url: str, *, patient: bool = False) -> Iterator[psycopg.Connection[Any]]:
    try:
        connection = connect(url, patient=patient)
    except psycopg.Error:
        raise StoreError(UNREACHABLE) from None
    with closing(connection):
        try:
            yield connection
        except psycopg.Error as error:
            raise (StoreError(UNREACHABLE) if faults.is_lost(error) else faults.translate(error)) from None


def _name_of(connection: psycopg.Connection[Any]) -> str:
    """Name the database without its user and password."""
    info = connection.info
    return f"PostgreSQL's database {info.dbname} at {info.host or 'this machine'}"
