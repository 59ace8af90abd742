"""The store as all others know it; when `write` returns, its changes are on the disk.

Modules of this package write SQL with `rows.one`, `rows.many` and `rows.run`. Only a `Backend` knows the database
program; SQLite's is in `store/sqlite`, PostgreSQL's in `store/postgres`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from bot.errors import StoreError
from bot.settings.database import Address
from bot.store.replicas import DatabaseServer, Joining, Membership
from bot.store.rows import Database, Row, many, one, run
from bot.store.sqlite import schema
from bot.store.sqlite.place import SqlitePlace

__all__ = ["Address", "Backend", "Clock", "Database", "Place", "Store", "place"]

Clock = Callable[[], float]
T = TypeVar("T")


class Backend(Protocol):
    @property
    def name(self) -> str: ...

    def submit(self, work: Callable[[Database], Any]) -> asyncio.Future[Any]:
        """Run `work` in the only writing transaction; the future resolves once it is committed and synced."""

    async def read(self, work: Callable[[Database], T], *, single: bool = False) -> T:
        """`single`: it has one statement, which needs no transaction around it."""

    async def copy(self, target: Path) -> None:
        """Write a consistent, private copy to a new file."""

    async def check(self) -> list[str]:
        """List problems with the data."""

    def join(self, joining: Joining) -> AbstractContextManager[Membership | None]:
        """Join the services on the database while the block lasts; None if there can be only this one. Blocks."""

    def server(self) -> DatabaseServer | None:
        """Ask the server about itself; None for a file. Blocks."""

    def is_claimed(self) -> bool:
        """Tell whether a service holds the database, of which our data directory knows nothing. Blocks."""

    def close(self) -> None:
        """Write what waits, then close; blocks."""


class Place(Protocol):
    """Where a store is or may be; every method blocks."""

    @property
    def is_remote(self) -> bool: ...

    def open(self, *, migrate: bool) -> Backend: ...

    def open_reader(self) -> Backend: ...

    def exists(self) -> bool:
        """Tell whether anything was ever stored there."""

    def require(self) -> None:
        """StoreError if a service could not begin there."""

    def peek(self, work: Callable[[Database], T]) -> T | None:
        """Run `work` on a database that nobody has opened yet; None if it cannot be read: `open` will say why."""

    def snapshot(self) -> AbstractContextManager[Database]:
        """Read one state of a whole store, however long that takes."""

    def filling(self) -> AbstractContextManager[Database]:
        """Make a store in one transaction, which ends with the block; an error leaves nothing."""

    def unused(self) -> AbstractContextManager[None]:
        """Keep services out of a store; Occupied if one runs on it."""

    def retire(self) -> None:
        """Close a store whose rows have moved: whoever opens it learns that."""


class Store:
    """The database; `open` is for the service, `open_reader` for commands that only read."""

    def __init__(self, backend: Backend, where: Address, clock: Clock) -> None:
        self.backend = backend
        self.where = where
        self.now = clock
        self.replica: str | None = None
        """Our name among the services on the database, once we have joined them."""

    @classmethod
    async def open(cls, where: Address, *, clock: Clock = time.time, migrate: bool = True) -> Self:
        """Open the database, or create it if it never existed. A StoreError says what to do.

        `migrate=False` is for commands beside a running service: they refuse an old schema."""
        return cls(await asyncio.to_thread(place(where).open, migrate=migrate), where, clock)

    @classmethod
    async def open_reader(cls, where: Address, *, clock: Clock = time.time) -> Self:
        return cls(await asyncio.to_thread(place(where).open_reader), where, clock)

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
        return place(self.where).is_remote

    async def write(self, work: Callable[[Database], T]) -> T:
        """Run `work` in the writer's transaction; return when it is committed and synced.

        If it raises, only its own changes are undone. It must not commit, and may run again."""
        result: T = await self.backend.submit(work)
        return result

    async def read(self, work: Callable[[Database], T], *, single: bool = False) -> T:
        """Run `work` on a reader's connection: it sees one state and never waits for the writer. `single`: it has only
        one statement."""
        return await self.backend.read(work, single=single)

    async def one(self, sql: str, /, **values: Any) -> Row | None:
        return await self.read(lambda db: one(db, sql, **values), single=True)

    async def many(self, sql: str, /, **values: Any) -> list[Row]:
        return await self.read(lambda db: many(db, sql, **values), single=True)

    async def run(self, sql: str, /, **values: Any) -> int:
        """Run one statement as a transaction; return how many rows it changed."""
        return await self.write(lambda db: run(db, sql, **values))

    @asynccontextmanager
    async def joined(self, joining: Joining) -> AsyncIterator[Membership | None]:
        """Join the services on the database while the block lasts; None if there can be only this one."""
        async with _in_thread(self.backend.join(joining)) as membership:
            self.replica = membership.id if membership is not None else None
            yield membership

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Keep services out while the block lasts; Occupied if one runs."""
        async with _in_thread(place(self.where).unused()):
            yield

    async def server(self) -> DatabaseServer | None:
        """Ask the database server about itself; None for a file."""
        return await asyncio.to_thread(self.backend.server)

    async def is_claimed(self) -> bool:
        """Tell whether a service holds the database from another data directory."""
        return await asyncio.to_thread(self.backend.is_claimed)

    async def close(self) -> None:
        """Write what waits, then let go of the database; safe to repeat."""
        await asyncio.to_thread(self.backend.close)


@asynccontextmanager
async def _in_thread(blocking: AbstractContextManager[T]) -> AsyncIterator[T]:
    entered = await asyncio.to_thread(blocking.__enter__)
    try:
        yield entered
    finally:
        await asyncio.to_thread(blocking.__exit__, None, None, None)


def place(where: Address) -> Place:
    """Choose the database program. PostgreSQL's driver is an extra, and loaded only by installations that use it."""
    if isinstance(where, Path):
        return SqlitePlace(where)
    try:
        from bot.store.postgres.backend import PostgresPlace
    except ImportError as error:
        raise StoreError(
            "FORGEHAND_DATABASE_URL needs PostgreSQL's driver. Install it: pip install 'forgehand[postgres]'"
        ) from error
    return PostgresPlace(where.reveal())


def tables() -> dict[str, tuple[str, ...]]:
    """Return the tables that last, in an order in which their rows can be inserted, each with its primary key."""
    return schema.tables()
