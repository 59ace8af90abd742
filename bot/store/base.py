"""The store as all others know it; when `write` returns, its changes are on the disk.

Modules of this package write SQL with `rows.one`, `rows.many` and `rows.run`. Only a `Backend` knows the database
program; SQLite's is in `store/sqlite`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from bot.store.rows import Database, Row, many, one, run
from bot.store.sqlite.backend import SqliteBackend, peek

__all__ = ["Backend", "Clock", "Database", "Store", "peek"]

Clock = Callable[[], float]
T = TypeVar("T")


class Backend(Protocol):
    def submit(self, work: Callable[[Database], Any]) -> asyncio.Future[Any]:
        """Run `work` in the only writing transaction; the future resolves once it is committed and synced."""

    async def read(self, work: Callable[[Database], T]) -> T: ...

    async def copy(self, target: Path) -> None:
        """Write a consistent, private copy to a new file."""

    async def check(self) -> list[str]:
        """Problems with the data; empty when it is sound."""

    def close(self) -> None:
        """Write what waits, then close; blocks."""


class Store:
    """The database; `open` is for the service, `open_reader` for commands that only read."""

    def __init__(self, backend: Backend, path: Path, clock: Clock) -> None:
        self.backend = backend
        self.path = path
        self.now = clock

    @classmethod
    async def open(cls, path: Path, *, clock: Clock = time.time, migrate: bool = True) -> Self:
        """Open the file, or create it if it never existed. A StoreError says what to do.

        `migrate=False` is for commands beside a running service: they refuse an old schema."""
        return cls(await asyncio.to_thread(SqliteBackend.open, path, migrate=migrate), path, clock)

    @classmethod
    async def open_reader(cls, path: Path, *, clock: Clock = time.time) -> Self:
        return cls(await asyncio.to_thread(SqliteBackend.open_reader, path), path, clock)

    @classmethod
    @asynccontextmanager
    async def reading(cls, path: Path) -> AsyncIterator[Self]:
        store = await cls.open_reader(path)
        try:
            yield store
        finally:
            await store.close()

    async def write(self, work: Callable[[Database], T]) -> T:
        """Run `work` in the writer's transaction; return when it is committed and synced.

        If it raises, only its own changes are undone. It must not commit, and may run again."""
        result: T = await self.backend.submit(work)
        return result

    async def read(self, work: Callable[[Database], T]) -> T:
        """Run `work` on a reader's connection: it sees one state and never waits for the writer."""
        return await self.backend.read(work)

    async def one(self, sql: str, /, **values: Any) -> Row | None:
        return await self.read(lambda db: one(db, sql, **values))

    async def many(self, sql: str, /, **values: Any) -> list[Row]:
        return await self.read(lambda db: many(db, sql, **values))

    async def run(self, sql: str, /, **values: Any) -> int:
        """Run one statement as a transaction; return how many rows it changed."""
        return await self.write(lambda db: run(db, sql, **values))

    async def close(self) -> None:
        """Write what waits, then close the file; safe to repeat."""
        await asyncio.to_thread(self.backend.close)
