"""The store as all others know it; when `write` returns, its changes are on the disk.

Modules of this package write SQL with `rows.one`, `rows.many` and `rows.run`. Only a `Backend` knows the database
program; SQLite's is in `store/sqlite`, PostgreSQL's in `store/postgres`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from bot.errors import StoreError
from bot.settings.database import Address
from bot.store.rows import Database, Row, many, one, run
from bot.store.sqlite import backend as sqlite
from bot.store.sqlite import schema
from bot.store.sqlite.backend import SqliteBackend

if TYPE_CHECKING:
    from bot.store.postgres.backend import PostgresBackend

__all__ = ["Address", "Backend", "Clock", "Database", "Store", "exists", "peek"]

Clock = Callable[[], float]
T = TypeVar("T")


class Backend(Protocol):
    @property
    def name(self) -> str: ...

    def submit(self, work: Callable[[Database], Any]) -> asyncio.Future[Any]:
        """Run `work` in the only writing transaction; the future resolves once it is committed and synced."""

    async def read(self, work: Callable[[Database], T]) -> T: ...

    async def copy(self, target: Path) -> None:
        """Write a consistent, private copy to a new file."""

    async def check(self) -> list[str]:
        """List problems with the data."""

    def claim(self) -> AbstractContextManager[None]:
        """Hold the database for one service while the block lasts; Occupied if another has it. Blocks."""

    def is_claimed(self) -> bool:
        """Tell whether a service holds the database, of which our data directory knows nothing. Blocks."""

    def close(self) -> None:
        """Write what waits, then close; blocks."""


class Store:
    """The database; `open` is for the service, `open_reader` for commands that only read."""

    def __init__(self, backend: Backend, where: Address, clock: Clock) -> None:
        self.backend = backend
        self.where = where
        self.now = clock

    @classmethod
    async def open(cls, where: Address, *, clock: Clock = time.time, migrate: bool = True) -> Self:
        """Open the database, or create it if it never existed. A StoreError says what to do.

        `migrate=False` is for commands beside a running service: they refuse an old schema."""
        return cls(await asyncio.to_thread(_open, where, migrate=migrate), where, clock)

    @classmethod
    async def open_reader(cls, where: Address, *, clock: Clock = time.time) -> Self:
        return cls(await asyncio.to_thread(_open_reader, where), where, clock)

    @classmethod
    @asynccontextmanager
    async def reading(cls, where: Address) -> AsyncIterator[Self]:
        store = await cls.open_reader(where)
        try:
            yield store
        finally:
            await store.close()

    @property
    def name(self) -> str:
        """Name the database in words that hold no secret."""
        return self.backend.name

    @property
    def is_remote(self) -> bool:
        """Tell whether a server holds the data, which may be away while we are well."""
        return not isinstance(self.where, Path)

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

    @asynccontextmanager
    async def claimed(self) -> AsyncIterator[None]:
        """Hold the database for this service while the block lasts; Occupied if another has it."""
        claim = self.backend.claim()
        await asyncio.to_thread(claim.__enter__)
        try:
            yield
        finally:
            await asyncio.to_thread(claim.__exit__, None, None, None)

    async def is_claimed(self) -> bool:
        """Tell whether a service holds the database from another data directory."""
        return await asyncio.to_thread(self.backend.is_claimed)

    async def close(self) -> None:
        """Write what waits, then let go of the database; safe to repeat."""
        await asyncio.to_thread(self.backend.close)


def exists(where: Address) -> bool:
    """Tell whether anything was ever stored there; blocking."""
    return where.exists() if isinstance(where, Path) else _postgres().exists(where.reveal())


def peek(where: Address, work: Callable[[Database], T]) -> T | None:
    """Run `work` on a database that nobody has opened yet; None if it cannot be read: `open` will say why. Blocking."""
    return sqlite.peek(where, work) if isinstance(where, Path) else _postgres().peek(where.reveal(), work)


def tables() -> dict[str, tuple[str, ...]]:
    """Return the tables that last, in an order in which their rows can be inserted, each with its primary key."""
    return schema.tables()


def snapshot(where: Address) -> AbstractContextManager[Database]:
    """Read one state of a whole store, however long that takes."""
    return sqlite.snapshot(where) if isinstance(where, Path) else _postgres().snapshot(where.reveal())


def filling(where: Address) -> AbstractContextManager[Database]:
    """Make a store in one transaction, which ends with the block; an error leaves nothing."""
    return sqlite.filling(where) if isinstance(where, Path) else _postgres().filling(where.reveal())


def unused(where: Address) -> AbstractContextManager[None]:
    """Keep services out of a store; Occupied if one runs on it. For a file, the lock on its folder does this."""
    return nullcontext() if isinstance(where, Path) else _postgres().unused(where.reveal())


def retire(where: Address) -> None:
    """Close a store whose rows have moved: whoever opens it learns that."""
    return sqlite.retire(where) if isinstance(where, Path) else _postgres().retire(where.reveal())


def _open(where: Address, *, migrate: bool) -> Backend:
    if isinstance(where, Path):
        return SqliteBackend.open(where, migrate=migrate)
    return _postgres().open(where.reveal(), migrate=migrate)


def _open_reader(where: Address) -> Backend:
    return SqliteBackend.open_reader(where) if isinstance(where, Path) else _postgres().open_reader(where.reveal())


def _postgres() -> type[PostgresBackend]:
    """Its driver is an extra, and loaded only by installations that use it."""
    try:
        from bot.store.postgres.backend import PostgresBackend
    except ImportError as error:
        raise StoreError(
            "FORGEHAND_DATABASE_URL needs PostgreSQL's driver. Install it: pip install 'forgehand[postgres]'"
        ) from error
    return PostgresBackend
