"""Our SQL in PostgreSQL's words. The statements of the store are written once; what differs is rewritten here."""

from __future__ import annotations

import re
from functools import lru_cache

_PIECES = re.compile(r"julianday\('now'\)|'(?:[^']|'')*'|::|:([a-z_][a-z0-9_]*)|%|\bINDEXED BY \w+|\bIS (NOT )?(?=:)")
_JULIAN = "(extract(epoch FROM clock_timestamp())::float8 / 86400.0 + 2440587.5)"
_TEXT = re.compile(r"\bTEXT\b")


@lru_cache(maxsize=1024)
def statement(sql: str) -> str:
    """`:name` becomes psycopg's placeholder; a hint for SQLite's planner goes; IS compares values of any kind; SQLite
    tells its time in julian days."""
    return _PIECES.sub(_piece, sql)


def migration(sql: str) -> str:
    """Texts are ordered by their bytes, as in SQLite, whatever the language of the database is."""
    bare = "\n".join(line.partition("--")[0].rstrip() for line in sql.splitlines())
    return _TEXT.sub('TEXT COLLATE "C"', bare)


def _piece(found: re.Match[str]) -> str:
    piece = found.group()
    if found.group(1):
        return f"%({found.group(1)})s"
    if piece.startswith("IS "):
        return f"IS {'' if found.group(2) else 'NOT '}DISTINCT FROM "
    if piece.startswith("INDEXED"):
        return ""
    if piece.startswith("julianday"):
        return _JULIAN
    return piece.replace("%", "%%")
