"""The numbered SQL files and which of them a database has seen: migrating forward, refusing what is newer.

The rule for a change of the schema: add the next number (`0002_noun.sql`) and never edit a file that a release has
carried. A migration keeps every row, moves data in SQL that PostgreSQL understands too, and is applied with all others
that wait in one transaction. Rows that the schema before it has written go to `tests/data/migrations` under that
schema's name: the tests take each migration over them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bot.errors import StoreError
from bot.store.sqlite import connections
from bot.store.sqlite.connections import Connection

if TYPE_CHECKING:
    from sqlite_utils import Migrations

FOLDER = Path(__file__).parents[1] / "migrations"
SET_NAME = "forgehand"
_CHECK_AT_MOST_BYTES = 256 * 1024 * 1024
"""A quick_check reads the whole file; past this size `forgehand db check` does it on demand."""


def files(folder: Path) -> list[Path]:
    """The migrations in their order."""
    return sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))


def inspect(path: Path, folder: Path = FOLDER, *, whole: bool = True) -> bool:
    """Raise StoreError for a file that we must not touch; else whether migrations wait. Changes nothing."""
    if path.stat().st_size == 0:
        return True
    try:
        db = connections.readable(path)
    except sqlite3.Error as error:
        raise _refusal(error, path) from None
    try:
        return _inspect(db, path, folder, whole=whole)
    except sqlite3.Error as error:
        raise _refusal(error, path) from None
    finally:
        db.close()


def migrate(db: Connection, folder: Path = FOLDER) -> None:
    """Apply what waits, all in one transaction: interrupted anywhere, nothing of it is there."""
    migrations = _migrations(folder)
    db.execute("BEGIN IMMEDIATE")
    try:
        migrations.apply(db)
        db.execute("COMMIT")
    except BaseException:
        db.rollback()
        raise


def _inspect(db: Connection, path: Path, folder: Path, *, whole: bool) -> bool:
    migrations = _migrations(folder)
    known = {file.stem for file in files(folder)}
    applied = {migration.name for migration in migrations.applied(db)}
    if whole and path.stat().st_size <= _CHECK_AT_MOST_BYTES:
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise connections.corrupt(path)
    if newer := sorted(applied - known):
        raise StoreError(
            f"{path} was written by a newer Forgehand (schema {newer[-1]}; this one knows {max(known)}). Install that "
            "version again, or restore a backup from before the upgrade."
        )
    if not applied and db.table_names():
        raise StoreError(f"{path} is a database of another program. Set FORGEHAND_DATA_DIR to a folder of its own.")
    return known != applied


def _migrations(folder: Path) -> Migrations:
    from sqlite_utils import Migrations

    migrations = Migrations(SET_NAME)
    for file in files(folder):
        migrations(name=file.stem)(_named(file))
    return migrations


def _named(file: Path) -> Callable[[Connection], None]:
    def apply(db: Connection) -> None:
        for statement in _statements(file.read_text(encoding="utf-8")):
            db.execute(statement)

    return apply


def _statements(script: str) -> Iterator[str]:
    """`executescript` asks SQLite at every letter whether one is complete, which was most of a first start's time."""
    statement = ""
    for piece in re.split("(?<=;)", script):
        statement += piece
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


def _refusal(error: sqlite3.Error, path: Path) -> BaseException:
    translated = connections.translate(error, path)
    return StoreError(f"{path} cannot be opened: {error}.") if translated is error else translated
