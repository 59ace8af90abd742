"""One process per data directory: the kernel's lock on a file, which a crash releases by itself."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from bot.errors import StoreError
from bot.store import directory

LOCK_NAME = "lock"


class Occupied(StoreError):
    """Another process has it."""


class DataDirLock:
    """Held while the `with` block runs; a second process is refused with the first one's number."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._descriptor = -1

    def __enter__(self) -> Self:
        directory.prepare(self._data_dir)
        # Never deleted: a process that still waits on a removed file would hold a lock that nobody else sees.
        descriptor = os.open(self._data_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = _text(descriptor)
            os.close(descriptor)
            raise Occupied(f"Forgehand is already running (pid {holder}) on {self._data_dir}. Stop it first.") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def _text(descriptor: int) -> str:
    return os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
