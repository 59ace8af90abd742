"""What SQLite's errors mean for us: wait and try again, or an operator has to do something."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from bot.errors import BotError, StoreError, TransientError

CLOSED = "The store is closed: the service is stopping."

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_DENIED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_STARVED = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CANTOPEN}


def code_of(error: BaseException) -> int:
    """SQLite's primary result code; 0 when the error is not SQLite's."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def is_busy(error: BaseException) -> bool:
    """Another process or connection holds the write lock."""
    return code_of(error) in _BUSY


def corrupt(path: Path) -> StoreError:
    return StoreError(
        f"{path} is damaged and was left as it is. Run `sqlite3 {path} 'PRAGMA quick_check'` to see how, then restore "
        "a backup made with `forgehand db backup`."
    )


def not_writable(path: Path) -> StoreError:
    return StoreError(f"{path} cannot be written to. Give the service's user write permission: chmod u+w {path}")


def translate(error: BaseException, path: Path) -> BaseException:
    """Our error for what the machine did to us; anything else (a broken constraint, a bug) as it is."""
    code = code_of(error)
    if isinstance(error, BotError) or not isinstance(error, sqlite3.Error):
        return error
    if code in _BUSY:
        return TransientError(f"{path.name} is locked by another process.", retry_after=5.0)
    if code in _STARVED:
        return TransientError(f"{path.name} cannot be used at the moment: is the disk full?", retry_after=30.0)
    if code in _CORRUPT:
        return corrupt(path)
    if code in _DENIED:
        return not_writable(path)
    return error
