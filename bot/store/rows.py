"""The three ways to run a statement with named parameters; texts are made storable here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import sqlite_utils

Database: TypeAlias = "sqlite_utils.Database"
"""Only a name at run time: who imports it for a signature does not load the library."""

Row: TypeAlias = Mapping[str, Any]


def many(db: Database, sql: str, **params: Any) -> list[Row]:
    """All rows; also for statements with RETURNING, which are then complete."""
    cursor = db.execute(sql, _storable(params))
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def one(db: Database, sql: str, **params: Any) -> Row | None:
    """The first row, if there is one."""
    rows = many(db, sql, **params)
    return rows[0] if rows else None


def run(db: Database, sql: str, **params: Any) -> int:
    """How many rows the statement changed."""
    return db.execute(sql, _storable(params)).rowcount


def clean(text: str) -> str:
    """Without what a database cannot hold: NUL (PostgreSQL) and lone surrogates (both)."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def _storable(params: dict[str, Any]) -> dict[str, Any]:
    return {name: clean(value) if isinstance(value, str) else value for name, value in params.items()}
