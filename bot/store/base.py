"""The store as all others know it: work goes in, and what was written is on the disk when `write` returns.

The nouns of this package write SQL against `Database` with `rows.one`, `rows.many` and `rows.run`, and know nothing of
the program behind it. That is a `Backend`: SQLite's is in `store/sqlite`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from bot.store.rows import Database
from bot.store.sqlite.backend import SqliteBackend, peek

__all__ = ["Backend", "Clock", "Database", "Store", "peek"]

Clock = Callable[[], float]
T = TypeVar("T")


class Backend(Protocol):
    """A database program."""

    def submit(self, work: Callable[[Database], Any]) -> asyncio.Future[Any]:
        """Run `work` in the one writing transaction; the answer comes when it is committed and synced."""

    async def read(self, work: Callable[[Database], T]) -> T: ...

    async def copy(self, target: Path) -> None:
        """Write a consistent, private copy to a file that must not exist yet."""

    async def check(self) -> list[str]:
        """Problems with the data; empty when it is sound."""

    def close(self) -> None:
        """Write what waits, then let go; blocks."""


class Store:
    """Open it with `open` (the service) or `open_reader` (commands that only look)."""

    def __init__(self, backend: Backend, path: Path, clock: Clock) -> None:
        self.backend = backend
        self.path = path
        self.now = clock

    @classmethod
    async def open(cls, path: Path, *, clock: Clock = time.time, migrate: bool = True) -> Self:
        """The database file, made if it was never there. Raises StoreError with a sentence that says what to do.

        `migrate=False` is for commands beside a running service: they take the schema as it is or refuse."""
        return cls(await asyncio.to_thread(SqliteBackend.open, path, migrate=migrate), path, clock)

    @classmethod
    async def open_reader(cls, path: Path, *, clock: Clock = time.time) -> Self:
        """Read only; works beside a running service."""
        return cls(await asyncio.to_thread(SqliteBackend.open_reader, path), path, clock)

    @classmethod
    @asynccontextmanager
    async def reading(cls, path: Path) -> AsyncIterator[Self]:
        """Open a reader for as long as the block lasts."""
        store = await cls.open_reader(path)
        try:
            yield store
        finally:
            await store.close()

    async def write(self, work: Callable[[Database], T]) -> T:
        """Run `work` in the writer's transaction; returns when it is committed and synced.

        Its exception undoes only its own changes and is raised here. It must not commit, and may be run again."""
        result: T = await self.backend.submit(work)
        return result

    async def read(self, work: Callable[[Database], T]) -> T:
        """Run `work` on a reader's connection: one consistent state, never waits for the writer."""
        return await self.backend.read(work)

    async def close(self) -> None:
        """Write what waits, then let go of the file; idempotent."""
        await asyncio.to_thread(self.backend.close)
