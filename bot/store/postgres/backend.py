"""The store on a PostgreSQL server that replicas share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Self, TypeVar

import psycopg

from bot.errors import StoreError
from bot.store.postgres import faults, schema
from bot.store.postgres.connections import PooledReaders, PostgresWriting, connect
from bot.store.rows import Database
from bot.store.writer import Writer

T = TypeVar("T")


class PostgresBackend:
    def __init__(self, url: str, *, writable: bool) -> None:
        """Blocking; for `open` and `open_reader`."""
        self._readers = PooledReaders(url)
        self._writing = PostgresWriting(url) if writable else None
        self._writer = Writer(self._writing) if self._writing is not None else None

    @classmethod
    def open(cls, url: str, *, migrate: bool) -> Self:
        cls._prepare(url, migrate=migrate)
        return cls(url, writable=True)

    @classmethod
    def open_reader(cls, url: str) -> Self:
        cls._prepare(url, migrate=False)
        return cls(url, writable=False)

    @staticmethod
    def _prepare(url: str, *, migrate: bool) -> None:
        try:
            with closing(connect(url)) as connection:
                where = named(connection)
                waiting = schema.inspect(connection, where)
                if waiting and not migrate:
                    raise StoreError(
                        f"{where} has an older schema. Start `forgehand serve` once: it brings it up to date."
                    )
                if waiting:
                    schema.migrate(connection)
        except psycopg.Error as error:
            raise unreachable(error) from None

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

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._readers.close()
        if self._writing is not None:
            self._writing.close()


def named(connection: psycopg.Connection[Any]) -> str:
    """The database in words: without its user and password."""
    info = connection.info
    return f"PostgreSQL's database {info.dbname} at {info.host or 'this machine'}"


def unreachable(error: psycopg.Error) -> BaseException:
    translated = faults.translate(error)
    if translated is not error and not faults.is_lost(error):
        return translated
    return StoreError(
        "FORGEHAND_DATABASE_URL: PostgreSQL cannot be reached, or refuses this user or database. Check that it runs; "
        "psql with the same URL says more."
    )
