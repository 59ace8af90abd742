"""The store: one writer thread with group commit, readers beside it; what was written is on the disk."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self, TypeVar

from bot.errors import StoreError
from bot.store import data_directory
from bot.store.rows import Database
from bot.store.sqlite import connections, schema
from bot.store.sqlite.connections import Readers
from bot.store.sqlite.writer import Checkpoints, Writer

__all__ = ["Clock", "Database", "Store"]

Clock = Callable[[], float]
T = TypeVar("T")


class Store:
    """Open it with `open` (the service) or `open_reader` (commands that only look)."""

    def __init__(self, path: Path, clock: Clock, *, writable: bool) -> None:
        """Blocking; for `open` and `open_reader`."""
        self.path = path
        self.now = clock
        self._readers = Readers(path)
        self._writer: Writer | None = None
        self._checkpoints: Checkpoints | None = None
        if writable:
            self._db = connections.writable(path)
            self._checkpoints = Checkpoints(connections.writable(path))
            self._writer = Writer(self._db, path, self._checkpoints.note)

    @classmethod
    async def open(cls, path: Path, *, clock: Clock = time.time, migrate: bool = True) -> Self:
        """The database file, made if it was never there. Raises StoreError with a sentence that says what to do.

        `migrate=False` is for commands beside a running service: they take the schema as it is or refuse."""
        return await asyncio.to_thread(cls._open, path, clock, migrate)

    @classmethod
    async def open_reader(cls, path: Path, *, clock: Clock = time.time) -> Self:
        """Read only; works beside a running service."""
        return await asyncio.to_thread(cls._open_reader, path, clock)

    @classmethod
    @asynccontextmanager
    async def reading(cls, path: Path) -> AsyncIterator[Self]:
        """As `open_reader`, for as long as the block lasts."""
        store = await cls.open_reader(path)
        try:
            yield store
        finally:
            await store.close()

    async def write(self, work: Callable[[Database], T]) -> T:
        """Run `work` in the writer's transaction; returns when it is committed and synced.

        Its exception undoes only its own changes and is raised here. It must not commit, and may be run again."""
        if self._writer is None:
            raise StoreError(f"{self.path} was opened for reading only.")
        result: T = await self._writer.submit(work)
        return result

    async def read(self, work: Callable[[Database], T]) -> T:
        """Run `work` on a reader's connection: one consistent state, never waits for the writer."""
        return await self._readers.read(work)

    async def close(self) -> None:
        """Write what waits, then let go of the file; idempotent."""
        await asyncio.to_thread(self._close)

    @classmethod
    def _open(cls, path: Path, clock: Clock, migrate: bool) -> Self:
        mark = path.with_name(path.name + ".created")
        if migrate:
            data_directory.prepare(path.parent, known=(path.name, mark.name, "lock"))
        _refuse_if_lost(path, mark if migrate else path)
        try:
            data_directory.prepare_file(path)
            waiting = schema.inspect(path)
            if waiting and not migrate:
                raise _older(path)
            if waiting:
                _migrate(path)
            mark.touch(mode=0o600)
            return cls(path, clock, writable=True)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{path} cannot be opened: {connections.translate(error, path)}") from None

    @classmethod
    def _open_reader(cls, path: Path, clock: Clock) -> Self:
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise _missing(path) from None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}. Run this as the service's user.") from None
        data_directory.require_file(path)
        if schema.inspect(path, whole=False):
            raise _older(path)
        return cls(path, clock, writable=False)

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._readers.close()
        if self._checkpoints is not None:
            self._checkpoints.close()
            self._db.close()


def _migrate(path: Path) -> None:
    db = connections.writable(path)
    try:
        db.execute("PRAGMA busy_timeout = 8000")
        schema.migrate(db)
    finally:
        db.close()


def _refuse_if_lost(path: Path, evidence: Path) -> None:
    """A database that was here and is gone must be noticed: starting anew would forget every session."""
    if path.exists():
        return
    if evidence == path:
        raise _missing(path)
    if evidence.exists() or path.with_name(path.name + "-wal").exists():
        raise StoreError(
            f"{path} is missing although Forgehand ran here before. Restore it from a backup made with "
            f"`forgehand db backup`, or remove {evidence} and {path}-wal to begin anew."
        )


def _missing(path: Path) -> StoreError:
    return StoreError(f"There is no {path} yet: start `forgehand serve` once, or set FORGEHAND_DATA_DIR to its folder.")


def _older(path: Path) -> StoreError:
    return StoreError(f"{path} is of an older version: start `forgehand serve` once, it brings it up to date.")
