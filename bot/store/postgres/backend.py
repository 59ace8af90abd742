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
from bot.store.data_directory import Occupied
from bot.store.postgres import faults, schema
from bot.store.postgres.connections import SERVICE, WRITERS, PooledReaders, PostgresWriting, Statements, connect
from bot.store.rows import Database
from bot.store.writer import Writer

T = TypeVar("T")


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
        raise StoreError("Back up a PostgreSQL database with pg_dump.")

    async def check(self) -> list[str]:
        return []

    @contextmanager
    def claim(self) -> Iterator[None]:
        """The lock ends with its connection. Our writer notices at its next write that another service has taken it."""
        assert self._writing is not None
        service = uuid.uuid4().hex
        with _connected(self._url) as lock:
            taken = lock.execute("SELECT pg_try_advisory_lock(%s)", (SERVICE,)).fetchone()
            if taken != (True,):
                running = lock.execute("SELECT host FROM services ORDER BY started_at DESC").fetchone()
                where = f" on {running[0]}" if running else ""
                raise Occupied(f"Forgehand is already running{where} with {self.name}. Stop it first.")
            with lock.transaction():
                lock.execute("SELECT pg_advisory_xact_lock(%s)", (WRITERS,))
                lock.execute("DELETE FROM services")
                insert = "INSERT INTO services (id, host, started_at) VALUES (%s, %s, extract(epoch FROM now()))"
                lock.execute(insert, (service, socket.gethostname()))
            self._writing.service = service
            yield
            self._writing.service = None

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


def _prepare(url: str, *, migrate: bool) -> str:
    """Bring the schema up to date if that is asked for; return the name of the database."""
    with _connected(url) as connection:
        where = _name_of(connection)
        waiting = schema.inspect(connection, where)
        if waiting and not migrate:
            raise StoreError(f"{where} has an older schema. `forgehand serve` brings it up to date.")
        if waiting:
            schema.migrate(connection)
    return where


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    try:
        with closing(connect(url)) as connection:
            yield connection
    except psycopg.Error as error:
        translated = faults.translate(error)
        if translated is not error and not faults.is_lost(error):
            raise translated from None
        raise StoreError(
            "FORGEHAND_DATABASE_URL: PostgreSQL cannot be reached, or refuses this user or database. Check that it "
            "runs; psql with the same URL says more."
        ) from None


def _name_of(connection: psycopg.Connection[Any]) -> str:
    """Name the database without its user and password."""
    info = connection.info
    return f"PostgreSQL's database {info.dbname} at {info.host or 'this machine'}"
