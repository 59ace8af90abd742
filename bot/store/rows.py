"""The border to the database program: a connection, the ways to run a statement with named parameters, and a row.

Texts are made storable here and nowhere else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
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
    """Fetch all rows; also of statements with RETURNING, which are then complete."""
    cursor = db.execute(sql, _storable(params))
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def one(db: Database, sql: str, **params: Any) -> Row | None:
    """The first row, if there is one."""
    rows = many(db, sql, **params)
    return rows[0] if rows else None


def run(db: Database, sql: str, **params: Any) -> int:
    """Run a statement; the number of rows that it changed."""
    return db.execute(sql, _storable(params)).rowcount


def run_each(db: Database, sql: str, each: Iterable[Mapping[str, Any]]) -> None:
    """The same statement for several rows."""
    for params in each:
        run(db, sql, **params)


def statement(text: str, /, **parts: str) -> str:
    """A statement whose `{parts}` are constants of ours, or names that `column` and `settings` have checked."""
    return text.format(**parts)


def column(name: str, known: Collection[str]) -> str:
    """The name itself; ValueError for one that is not known."""
    if name not in known:
        raise ValueError(f"not a column that may be set: {name}")
    return name


def settings(names: Iterable[str], known: Collection[str]) -> str:
    """`name = :name, ...` for an UPDATE; ValueError for one that is not known."""
    return ", ".join(f"{column(name, known)} = :{name}" for name in names)


def day_of(time: str) -> str:
    """The day since 1970 of a column with seconds; rounded down, since PostgreSQL's CAST rounds to the nearest."""
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
    """Flags become whole numbers, as they are in both databases: PostgreSQL does not turn one into the other."""
    values: dict[str, Any] = {}
    for name, value in params.items():
        values[name] = clean(value) if isinstance(value, str) else int(value) if isinstance(value, bool) else value
    return values
