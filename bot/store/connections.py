"""How a connection to the store is made: the one place that opens SQLite."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

from bot.store.rows import Database

BUSY_MILLISECONDS = 250
"""Short, because the writer counts its own budget and has to look at new jobs in between."""

_EMERGENCY_CHECKPOINT_PAGES = 16_384
"""64 MB: only if the background checkpoint does not come through."""

_WAL_LIMIT_BYTES = 64 * 1024 * 1024


def writable(path: Path) -> Database:
    """The writer's connection: a commit returns when its bytes are on the disk."""
    db = _connect(path, "rw")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute(f"PRAGMA wal_autocheckpoint = {_EMERGENCY_CHECKPOINT_PAGES}")
    db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
    return db


def readable(path: Path, *, busy_milliseconds: int = 8_000) -> Database:
    """Sees what is committed and cannot change it, nor fold the log into the file when it closes."""
    db = _connect(path, "ro")
    db.execute("PRAGMA query_only = ON")
    db.execute(f"PRAGMA busy_timeout = {busy_milliseconds}")
    return db


def _connect(path: Path, mode: str) -> Database:
    from sqlite_utils import Database as Library

    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=BUSY_MILLISECONDS / 1000,
        isolation_level=None,  # no transaction begins behind our back: all of ours are IMMEDIATE
        check_same_thread=False,  # closed from another thread than the one that used it
        cached_statements=512,
    )
    return Library(connection, recursive_triggers=False, execute_plugins=False)
