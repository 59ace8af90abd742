"""The store in a PostgreSQL database, which several services and commands may share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from bot.errors import StoreError
from bot.settings import Secret
from bot.store.data_directory import Occupied
from bot.store.postgres import access, faults, schema
from bot.store.postgres.connections import SERVICE, WRITERS, PooledReaders, PostgresWriting, Statements, connect
from bot.store.postgres.membership import PostgresMembership
from bot.store.replicas import DatabaseServer, Joining
from bot.store.rows import Database
from bot.store.writer import Writer

T = TypeVar("T")
UNREACHABLE = (
    "FORGEHAND_DATABASE_URL: PostgreSQL cannot be reached, or refuses this user or database. Check that it runs; psql "
    "with the same URL says more."
)


class PostgresBackend:
    def __init__(self, url: str, name: str, *, writable: bool) -> None:
        """Blocking; for `PostgresPlace`."""
        self.name = name
        self._url = url
        self._readers = PooledReaders(url)
        self._writing = PostgresWriting(url) if writable else None
        self._writer = Writer(self._writing) if self._writing is not None else None

    def submit(self, work: Callable[[Database], Any]) -> asyncio.Future[Any]:
        if self._writer is None:
            raise StoreError("The database was opened for reading only.")
        return self._writer.submit(work)

    async def read(self, work: Callable[[Database], T], *, single: bool = False) -> T:
        return await self._readers.read(work, single=single)

    async def copy(self, target: Path) -> None:
        """The copy is a file of SQLite's."""
        from bot.store import relocation

        await asyncio.to_thread(relocation.copy, Secret(self._url), target)

    async def check(self) -> list[str]:
        return []  # PostgreSQL itself watches over keys and references

    @contextmanager
    def join(self, joining: Joining) -> Iterator[PostgresMembership]:
        """From now on our writer looks for our row in each transaction, also after we have left."""
        assert self._writing is not None
        membership = PostgresMembership(self._url, joining)
        with _translated():
            membership.join()
        self._writing.fence(membership.id, joining.on_replaced)
        try:
            yield membership
        finally:
            self._writing.fence(membership.id, lambda: None)
            membership.leave()

    def server(self) -> DatabaseServer:
        with _connected(self._url) as connection:
            return schema.server(connection)

    def is_claimed(self) -> bool:
        with _connected(self._url) as connection:
            return schema.is_claimed(connection)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._readers.close()
        if self._writing is not None:
            self._writing.close()


class PostgresPlace:
    """A database on a server; blocking."""

    is_remote = True

    def __init__(self, url: str) -> None:
        self._url = url

    def open(self, *, migrate: bool) -> PostgresBackend:
        return PostgresBackend(self._url, _prepare(self._url, migrate=migrate), writable=True)

    def open_reader(self) -> PostgresBackend:
        return PostgresBackend(self._url, _prepare(self._url, migrate=False), writable=False)

    def exists(self) -> bool:
        with _connected(self._url) as connection:
            return schema.exists(connection)

    def require(self) -> None:
        with _connected(self._url) as connection:
            access.require_direct(connection)
            access.require_schemas(connection, _name_of(connection))

    def peek(self, work: Callable[[Database], T]) -> T | None:
        with _connected(self._url) as connection:
            return work(Statements(connection)) if schema.exists(connection) else None

    @contextmanager
    def snapshot(self) -> Iterator[Database]:
        with _connected(self._url, patient=True) as connection:
            where = _name_of(connection)
            if schema.inspect(connection, where):
                raise _older(where)
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield Statements(connection)

    @contextmanager
    def filling(self) -> Iterator[Database]:
        _prepare(self._url, migrate=True, alone=True)
        with _connected(self._url, patient=True) as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (WRITERS,))
            yield Statements(connection)

    @contextmanager
    def unused(self) -> Iterator[None]:
        with _held(self._url):
            yield

    def retire(self) -> None:
        with _connected(self._url) as connection:
            schema.retire(connection)


def _prepare(url: str, *, migrate: bool, alone: bool = False) -> str:
    """Bring the schema up to date if that is asked for; return the name of the database.

    `alone`: the caller keeps services out."""
    with _connected(url) as connection:
        where = _name_of(connection)
        access.require_direct(connection)
        waiting = schema.inspect(connection, where)
        if waiting and not migrate:
            raise _older(where)
        if migrate:
            access.require_schemas(connection, where)
        if waiting:
            schema.migrate(connection, where, alone=alone)
    return where


@contextmanager
def _held(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Hold the lock that all services share, alone; whoever has lost its hold on it writes nothing more."""
    with _connected(url) as lock:
        hosts = "SELECT host FROM replicas ORDER BY started_at DESC"
        if lock.execute("SELECT pg_try_advisory_lock(%s)", (SERVICE,)).fetchone() != (True,):
            running = [row[0] for row in lock.execute(hosts)] if schema.exists(lock) else []
            where = f" on {' and '.join(dict.fromkeys(running))}" if running else ""
            raise Occupied(f"Forgehand is already running{where} with {_name_of(lock)}. Stop it first.")
        if schema.exists(lock):
            lock.execute("DELETE FROM replicas")
        yield lock


def _older(where: str) -> StoreError:
    return StoreError(f"{where} has an older schema, or none: start `forgehand serve` once, it brings it up to date.")


@contextmanager
def _connected(url: str, *, patient: bool = False) -> Iterator[psycopg.Connection[Any]]:
    with _translated(), closing(connect(url, patient=patient)) as connection:
        yield connection


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        if access.is_poolers(error):
            raise StoreError(access.POOLER) from None
        raise (StoreError(UNREACHABLE) if faults.is_lost(error) else faults.translate(error)) from None


def _name_of(connection: psycopg.Connection[Any]) -> str:
    """Name the database without its user and password."""
    info = connection.info
    return f"PostgreSQL's database {info.dbname} at {info.host or 'this machine'}"
