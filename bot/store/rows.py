"""The border to the database program: a connection, statements with named parameters, and a row.

Only this module makes texts storable."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

ROWS_AT_ONCE = 50
"""SQLite takes 32,766 values in a statement."""


class Cursor(Protocol):
    @property
    def description(self) -> Any: ...

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Database(Protocol):
    def execute(self, sql: str, parameters: dict[str, Any] | None = None, /) -> Cursor: ...


Row: TypeAlias = Mapping[str, Any]


def many(db: Database, sql: str, **params: Any) -> list[Row]:
    """Fetch all rows, which also completes a statement with RETURNING."""
    cursor = db.execute(sql, _storable(params))
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def one(db: Database, sql: str, **params: Any) -> Row | None:
    rows = many(db, sql, **params)
    return rows[0] if rows else None


def run(db: Database, sql: str, **params: Any) -> int:
    """Run a statement and return how many rows it changed."""
    return db.execute(sql, _storable(params)).rowcount


def insert(db: Database, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows with the same columns, many in a statement: each statement is a round trip to a server."""
    for at in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[at : at + ROWS_AT_ONCE]
        values = {f"{name}_{n}": value for n, row in enumerate(part) for name, value in row.items()}
        db.execute(_insertion(table, tuple(part[0]), len(part)), _storable(values))


@lru_cache(maxsize=256)
def _insertion(table: str, names: tuple[str, ...], count: int) -> str:
    places = ", ".join(f"({', '.join(f':{name}_{n}' for name in names)})" for n in range(count))
    insertion = "INSERT INTO {table} ({names}) VALUES {places}"
    return statement(insertion, table=table, names=", ".join(names), places=places)


def statement(text: str, /, **parts: str) -> str:
    """Put `{parts}` into a statement: constants of ours, or names that `column` and `settings` have checked."""
    return text.format(**parts)


def column(name: str, known: Collection[str]) -> str:
    if name not in known:
        raise ValueError(f"not a column that may be set: {name}")
    return name


def settings(names: Iterable[str], known: Collection[str]) -> str:
    """Return `name = :name, ...` for an UPDATE; ValueError for an unknown name."""
    return ", ".join(f"{column(name, known)} = :{name}" for name in names)


def day_of(time: str) -> str:
    """Return SQL for the day since 1970 of a column with seconds. PostgreSQL's CAST alone rounds to nearest."""
    return f"CAST(FLOOR({time} / 86400.0) AS BIGINT)"


def clean(text: str) -> str:
    """Remove what a database cannot hold: NUL (PostgreSQL) and lone surrogates (both)."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def _storable(params: dict[str, Any]) -> dict[str, Any]:
    """Clean texts, and turn flags into integers, which PostgreSQL does not do by itself."""
    return {
        name: clean(value) if isinstance(value, str) else int(value) if isinstance(value, bool) else value
        for name, value in params.items()
    }
