"""The border to the database program: a connection, the ways to run a statement with named parameters, and a row.

Texts are made storable here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias


class Cursor(Protocol):
    @property
    def description(self) -> Any: ...

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Database(Protocol):
    """A connection within its transaction: all that a statement needs of a backend."""

    def execute(self, sql: str, parameters: dict[str, Any] | None = None, /) -> Cursor: ...


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


def run_each(db: Database, sql: str, each: Iterable[Mapping[str, Any]]) -> None:
    """The same statement for several rows."""
    for params in each:
        run(db, sql, **params)


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
