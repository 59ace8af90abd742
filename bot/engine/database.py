"""The database of the engine: its own SQLite file, or a schema beside the store's in PostgreSQL."""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot.settings.database import ENGINE_SCHEMA, Address

if TYPE_CHECKING:
    from sqlalchemy import URL
    from sqlalchemy import Engine as SqlEngine

log = logging.getLogger(__name__)

SCHEMA = ENGINE_SCHEMA
CONNECTIONS = 8
MOST_CONNECTIONS = 2 * CONNECTIONS
_CONNECTING = {
    "connect_timeout": 5,
    "application_name": "forgehand-engine",
    "options": "-c statement_timeout=8s -c lock_timeout=4s -c idle_in_transaction_session_timeout=5s",
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
}


def url_of(where: Address) -> URL:
    import sqlalchemy

    if isinstance(where, Path):
        return sqlalchemy.URL.create("sqlite", database=str(where))
    return sqlalchemy.make_url(where.reveal()).set(drivername="postgresql+psycopg")


def opened(where: Address) -> SqlEngine:
    """Blocking."""
    if isinstance(where, Path):
        set_aside_if_spoilt(where)
        return _sqlite_engine(where)
    import sqlalchemy

    settings: dict[str, Any] = {
        "pool_size": CONNECTIONS,
        "max_overflow": MOST_CONNECTIONS - CONNECTIONS,
    }
    return sqlalchemy.create_engine(url_of(where), connect_args=_CONNECTING, **settings)


def set_aside_if_spoilt(path: Path) -> None:
    """Replace a damaged file by a new one: its data may be lost, but the service must start."""
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(path, timeout=30.0)) as db:
            sound = db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.OperationalError:
        raise  # locked or no space: that says nothing about its data
    except sqlite3.DatabaseError:
        sound = False
    if not sound:
        log.error("engine.db is damaged: it is set aside, and unfinished turns start again from the store")
        for suffix in ("", "-wal", "-shm"):
            file = path.with_name(path.name + suffix)
            if file.exists():
                file.replace(path.with_name(f"{path.name}.damaged{suffix}"))


def _sqlite_engine(path: Path) -> SqlEngine:
    import sqlalchemy

    path.touch(mode=0o600)
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", pool_size=8, max_overflow=8)

    @sqlalchemy.event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = "IMMEDIATE"
        connection.execute("PRAGMA busy_timeout=30000")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        if sqlite3.sqlite_version_info < (3, 42):
            # DBOS stamps its rows with unixepoch('subsec'), which older SQLite answers with NULL.
            connection.create_function("unixepoch", -1, lambda *_: time.time())

    return engine
