"""Takes all rows of a store to another: a backup to a file, a restore from one, a move between SQLite and PostgreSQL.

One transaction reads and one writes, and both ends are compared before the second is committed: a store arrives whole
or not at all. `copy` blocks."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.errors import StoreError
from bot.settings import Address, BucketSettings
from bot.store import base
from bot.store.chunks import ChunkHome
from bot.store.files import KeptFiles
from bot.store.rows import Database, Row, many, one, run, statement

PAGE_ROWS = 500
_PAGE_VALUES = 20_000
"""SQLite takes 32,766 parameters in a statement."""


@dataclass(frozen=True)
class CopiedTable:
    name: str
    rows: int
    sha256: str


def copy(source: Address, target: Address) -> list[CopiedTable]:
    """Copy every row to a store that holds none; StoreError if it does, or if the two differ afterwards."""
    tables = base.tables()
    with base.place(source).snapshot() as old, base.place(target).filling() as new:
        _require_empty(new, tables)
        copied = [_copied(old, new, name, key) for name, key in tables.items()]
        for table in copied:
            arrived = _digest(_pages(new, table.name, tables[table.name]), table.name)
            if arrived != table:
                raise StoreError(
                    f"Table {table.name} did not arrive as it left: {table.rows} rows, and {arrived.rows} arrived. "
                    "Nothing was changed. Run this again, and report it if it happens twice."
                )
    return copied


async def move(
    source: Address, target: Address, data_dir: Path, bucket: BucketSettings | None
) -> tuple[list[CopiedTable], int]:
    """Move rows and files, then close the old store, so that nobody goes on with it by mistake.

    Files in a bucket stay there. In PostgreSQL the others lie beside the rows, else in the data directory. Return how
    many of these there are, too."""
    copied = await asyncio.to_thread(copy, source, target)
    async with _opened(target) as store, KeptFiles.opened(store, data_dir, bucket) as files:
        count = await (_unpack(store, data_dir, files) if files.home is None else files.save_all())
    await asyncio.to_thread(base.place(source).retire)
    return copied, count


async def restore(
    source: Address, target: Address, data_dir: Path, bucket: BucketSettings | None
) -> tuple[list[CopiedTable], list[str]]:
    """Fill a store from a backup, and return what is missing of the files that its rows name."""
    copied = await asyncio.to_thread(copy, source, target)
    async with _opened(target) as store, KeptFiles.opened(store, data_dir, bucket) as files:
        if files.home is None:
            await _unpack(store, data_dir, files)
        return copied, await files.missing()


async def move_files(
    where: Address, data_dir: Path, source: BucketSettings | None, target: BucketSettings | None
) -> int:
    """Move the files into a bucket or out of it; return how many there are now."""
    async with (
        _opened(where) as store,
        KeptFiles.opened(store, data_dir, source) as old,
        KeptFiles.opened(store, data_dir, target) as new,
    ):
        return await old.move(new)


async def _unpack(store: base.Store, data_dir: Path, files: KeptFiles) -> int:
    """Bring the files that lie beside the rows to the data directory."""
    return await KeptFiles(store, data_dir, (ChunkHome(store),)).move(files)


@asynccontextmanager
async def _opened(where: Address) -> AsyncIterator[base.Store]:
    store = await base.Store.open(where)
    try:
        yield store
    finally:
        await store.close()


def _require_empty(db: Database, tables: dict[str, tuple[str, ...]]) -> None:
    for name in tables:
        if one(db, statement("SELECT 1 FROM {table} LIMIT 1", table=name)) is not None:
            raise StoreError(f"The target already holds rows (in {name}). Choose an empty database or a new file.")


def _copied(old: Database, new: Database, name: str, key: tuple[str, ...]) -> CopiedTable:
    def passed_on() -> Iterator[list[Row]]:
        for page in _pages(old, name, key):
            _insert(new, name, page)
            yield page

    return _digest(passed_on(), name)


def _pages(db: Database, name: str, key: tuple[str, ...]) -> Iterator[list[Row]]:
    """Read a table in the order of its key, some hundred rows at a time."""
    columns = ", ".join(key)
    first = statement("SELECT * FROM {table} ORDER BY {key} LIMIT :most", table=name, key=columns)
    after = ", ".join(f":{column}" for column in key)
    following = "SELECT * FROM {table} WHERE ({key}) > ({after}) ORDER BY {key} LIMIT :most"
    page = many(db, first, most=PAGE_ROWS)
    while page:
        yield page
        last = {column: page[-1][column] for column in key}
        page = many(db, statement(following, table=name, key=columns, after=after), most=PAGE_ROWS, **last)


def _insert(db: Database, name: str, page: list[Row]) -> None:
    columns = list(page[0])
    at_once = max(1, _PAGE_VALUES // len(columns))
    for start in range(0, len(page), at_once):
        rows = page[start : start + at_once]
        places = ", ".join(f"({', '.join(f':{column}_{n}' for column in columns)})" for n in range(len(rows)))
        values = {f"{column}_{n}": row[column] for n, row in enumerate(rows) for column in columns}
        insert = "INSERT INTO {table} ({columns}) VALUES {places}"
        run(db, statement(insert, table=name, columns=", ".join(columns), places=places), **values)


def _digest(pages: Iterator[list[Row]], name: str) -> CopiedTable:
    rows, digest = 0, hashlib.sha256()
    for page in pages:
        for row in page:
            rows += 1
            digest.update(json.dumps(dict(row), sort_keys=True).encode() + b"\n")
    return CopiedTable(name, rows, digest.hexdigest())
