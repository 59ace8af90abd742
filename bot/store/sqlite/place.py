"""A file as the place of a store: opened or refused, looked at, filled as a whole, and closed after a move."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TypeVar

from bot.errors import StoreError
from bot.store import data_directory
from bot.store.rows import Database
from bot.store.sqlite import schema
from bot.store.sqlite.backend import SqliteBackend

T = TypeVar("T")
_SIDE_FILES = ("-wal", "-shm")


class SqlitePlace:
    is_remote = False

    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self, *, migrate: bool) -> SqliteBackend:
        path = self._path
        mark = path.with_name(path.name + ".created")
        if migrate:
            data_directory.prepare(path.parent, known=(path.name, mark.name, "lock"))
        _refuse_if_lost(path, mark if migrate else path)
        try:
            _prepare_file(path)
            waiting = schema.inspect(path)
            if waiting and not migrate:
                raise _older(path)
            if waiting:
                with closing(schema.writable(path)) as db:
                    db.execute("PRAGMA busy_timeout = 8000")
                    schema.migrate(db)
            mark.touch(mode=0o600)
            return SqliteBackend(path, writable=True)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{path} cannot be opened: {schema.translate(error, path)}") from None

    def open_reader(self) -> SqliteBackend:
        path = self._path
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise _missing(path) from None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}. Run this as the service's user.") from None
        _require_file(path)
        if schema.inspect(path, whole=False):
            raise _older(path)
        return SqliteBackend(path, writable=False)

    def exists(self) -> bool:
        return self._path.exists()

    def require(self) -> None:
        """The data directory is checked by itself."""

    def peek(self, work: Callable[[Database], T]) -> T | None:
        if not self._path.is_file() or self._path.stat().st_size == 0:
            return None
        try:
            with closing(schema.readable(self._path)) as db:
                return work(db)
        except sqlite3.Error:
            return None

    @contextmanager
    def snapshot(self) -> Iterator[Database]:
        if not self._path.exists():
            raise _missing(self._path)
        _require_file(self._path)
        if schema.inspect(self._path):
            raise _older(self._path)
        with _translated(self._path), closing(schema.readable(self._path)) as db:
            db.execute("BEGIN")
            yield db

    @contextmanager
    def filling(self) -> Iterator[Database]:
        """Fill a file beside the target, which gets its name when it is whole."""
        incoming = self._path.with_name(self._path.name + ".incoming")
        with _translated(self._path):
            if os.path.lexists(self._path):
                raise StoreError(f"{self._path} exists already. Choose a new file.")
            incoming.unlink(missing_ok=True)
            _prepare_file(incoming)
            try:
                with closing(schema.writable(incoming)) as db:
                    schema.migrate(db)
                    db.execute("BEGIN IMMEDIATE")
                    yield db
                    db.execute("COMMIT")
                    db.execute("PRAGMA journal_mode = DELETE")
                os.link(incoming, self._path)  # fails if the target has appeared
            finally:
                incoming.unlink(missing_ok=True)

    def unused(self) -> AbstractContextManager[None]:
        return nullcontext()  # the lock on its folder says it already

    def retire(self) -> None:
        with _translated(self._path):
            with closing(schema.writable(self._path)) as db:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._path.rename(_moved(self._path))


def _moved(path: Path) -> Path:
    return path.with_name(path.name + ".moved")


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"{path} cannot be used: {schema.translate(error, path)}") from None


def _prepare_file(path: Path) -> None:
    """Check an existing file, or create an empty one; make it private."""
    if os.path.lexists(path):
        _require_file(path)
        if not path.stat().st_mode & stat.S_IWUSR or not os.access(path, os.W_OK):
            raise schema.not_writable(path)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    for file in (path, *(path.with_name(path.name + suffix) for suffix in _SIDE_FILES)):
        if file.exists() and stat.S_IMODE(file.stat().st_mode) & 0o177:
            file.chmod(0o600)


def _require_file(path: Path) -> None:
    if path.is_symlink() or not path.is_file():
        raise StoreError(f"{path} is not a regular file. Move it away or set FORGEHAND_DATA_DIR to another folder.")
    data_directory.require_ours(path)


def _refuse_if_lost(path: Path, evidence: Path) -> None:
    """Refuse to replace a lost database by an empty one, which would forget every session."""
    if path.exists():
        return
    if _moved(path).exists():
        raise StoreError(
            f"This store was moved to PostgreSQL: set FORGEHAND_DATABASE_URL. To go back to its state before the move, "
            f"rename {_moved(path)} to {path.name}."
        )
    if evidence == path:
        raise _missing(path)
    if evidence.exists() or path.with_name(path.name + "-wal").exists():
        raise StoreError(
            f"{path} is missing although Forgehand ran here before. Restore it from a backup made with "
            f"`forgehand db backup`, or remove {evidence} and {path}-wal to start over."
        )


def _missing(path: Path) -> StoreError:
    return StoreError(f"There is no {path} yet: start `forgehand serve` once, or set FORGEHAND_DATA_DIR to its folder.")


def _older(path: Path) -> StoreError:
    return StoreError(f"{path} is of an older version: start `forgehand serve` once, it brings it up to date.")
