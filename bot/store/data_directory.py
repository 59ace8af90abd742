"""The data directory: private, ours, writable, and in use by one process at a time."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self

from bot.errors import StoreError


def prepare(directory: Path, *, known: tuple[str, ...] = ("state.db", "lock")) -> None:
    """Create the folder, or accept one that is empty or already ours, and close it to others (0700)."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        entries = {entry.name for entry in directory.iterdir()}
    except (FileExistsError, NotADirectoryError):
        raise StoreError(f"{directory} is not a folder. Set FORGEHAND_DATA_DIR to one.") from None
    except OSError as error:
        raise StoreError(
            f"{directory} cannot be used: {error.strerror}. Set FORGEHAND_DATA_DIR to a folder of your own."
        ) from None
    require_ours(directory)
    mode = stat.S_IMODE(directory.stat().st_mode)
    if not mode & stat.S_IWUSR or not os.access(directory, os.W_OK):
        raise StoreError(
            f"{directory} cannot be written to. Make it writable for the service's user: chmod 700 {directory}"
        )
    if mode & 0o077:
        if entries and entries.isdisjoint(known):
            # Somebody else's folder (a home, /tmp): closing it to others would be a surprise.
            raise StoreError(
                f"{directory} is open to other users and holds other files. Set FORGEHAND_DATA_DIR to a folder of its "
                f"own, or close it: chmod 700 {directory}"
            )
        directory.chmod(0o700)


def require_ours(path: Path) -> None:
    owner = path.stat().st_uid
    if owner != os.geteuid():
        raise StoreError(
            f"{path} belongs to user {owner} but this process runs as user {os.geteuid()}. Run it as that user, "
            f"or hand the data over: chown -R {os.geteuid()} {path}"
        )


LOCK_NAME = "lock"
HOME_NAME = "home"
"""The file with the directory's own name."""


class Occupied(StoreError):
    """Another process uses the data directory."""


class DataDirLock:
    """A lock for the `with` block; a second process is refused with the first one's number."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._descriptor = -1

    def __enter__(self) -> Self:
        prepare(self._data_dir)
        # Never delete it: a process that waits on a removed file would hold a lock that nobody else sees.
        descriptor = os.open(self._data_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise Occupied(f"Forgehand is already running (pid {holder}) on {self._data_dir}. Stop it first.") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        self._descriptor = descriptor
        return self

    @property
    def home(self) -> str:
        """Name the directory on this machine: who has held it before us has ended. A copy elsewhere has another."""
        file = self._data_dir / HOME_NAME
        if not file.exists():
            file.write_text(uuid.uuid4().hex, "ascii")
        return f"{file.read_text('ascii')}@{socket.gethostname()}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
