"""Opens files in folders that an agent writes to: follows no links, and opens only regular files.

It opens each step of a path below the step before and without following a link, so a swapped folder cannot lead
out. Opening never blocks. The host and root inside use it. All errors are OSErrors.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

BLOCK = 1 << 20
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE)
"""Errors that may pass; any other error means that there is no such file."""
_ENTRIES = 10_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class BaseLost(OSError):
    """Our own folder above the path is gone."""


class NotRegular(OSError):
    """The path is a folder, a pipe or a device."""


class FileStat(NamedTuple):
    name: str
    size: int
    is_dir: bool


class SafePath(NamedTuple):
    """A path, split into a folder of ours and the steps from there."""

    base: str
    steps: tuple[str, ...]
    name: str  # the last part of the path

    @classmethod
    def below(cls, path: str, bases: Iterable[str]) -> SafePath | None:
        """Split a path below one of these folders; None if it is in none of them."""
        if path.startswith("/") and ".." not in path.split("/") and "\0" not in path:
            for base in bases:
                if path == base or path.startswith(base + "/"):
                    steps = tuple(part for part in path[len(base) :].split("/") if part not in ("", "."))
                    return cls(base, steps, (steps or base.split("/"))[-1])
        return None

    @contextlib.contextmanager
    def file(self) -> Iterator[int]:
        self._require_name()
        with _opened(self.base, self.steps[:-1]) as folder:
            descriptor = open_regular(self.steps[-1], folder)
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    def read(self, offset: int, limit: int) -> bytes:
        found = bytearray()
        with self.file() as descriptor:
            while block := os.pread(descriptor, min(limit - len(found), BLOCK), offset + len(found)):
                found += block
        return bytes(found)

    def copy(self, put: Callable[[bytes], object], most: int) -> int | None:
        """Pass the whole file to `put` and return its size. None if it is larger, or grows larger meanwhile."""
        size = 0
        with self.file() as descriptor:
            if os.fstat(descriptor).st_size > most:
                return None
            while block := os.read(descriptor, BLOCK):
                size += len(block)
                if size > most:
                    return None
                put(block)
        return size

    def entries(self) -> list[FileStat]:
        with _opened(self.base, self.steps) as folder, os.scandir(folder) as found:
            names = sorted(one.name for one in itertools.islice(found, _ENTRIES))
            return [one for one in (_describe(name, folder) for name in names) if one is not None]

    def entry(self) -> FileStat | None:
        """Return None if there is neither a folder nor a regular file."""
        try:
            with _opened(self.base, self.steps[:-1]) as folder:
                if self.steps:
                    return _describe(self.steps[-1], folder)
                return FileStat(self.name, 0, True)
        except BaseLost:
            raise
        except OSError:
            return None

    def write(self, feed: Callable[[int], None], owner: tuple[int, int] | None, *, executable: bool = False) -> None:
        """Fill a new file by `feed` and replace the old one with it, so that no reader sees half a file."""
        self._require_name()
        with _opened(self.base, self.steps[:-1], _Maker(owner)) as folder:
            partial = f".{secrets.token_hex(8)}.part"
            descriptor = os.open(partial, _NEW, 0o600, dir_fd=folder)
            try:
                try:
                    feed(descriptor)
                    _give(descriptor, 0o755 if executable else 0o644, owner)
                finally:
                    os.close(descriptor)
                os.rename(partial, self.steps[-1], src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(partial, dir_fd=folder)
                raise

    def _require_name(self) -> None:
        if not self.steps:
            raise OSError(errno.EISDIR, "is a folder")


class _Maker(NamedTuple):
    owner: tuple[int, int] | None

    def step(self, here: int, name: str) -> int:
        try:
            os.mkdir(name, 0o700, dir_fd=here)
        except FileExistsError:
            return os.open(name, _FOLDER, dir_fd=here)
        below = os.open(name, _FOLDER, dir_fd=here)
        _give(below, 0o755, self.owner)
        return below


def open_regular(path: str | os.PathLike[str], folder: int | None = None) -> int:
    """Open a regular file to read from; NotRegular for anything else, OSError for a link."""
    descriptor = os.open(path, _FILE, dir_fd=folder)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotRegular(errno.EINVAL, "is not a regular file")


def put(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _give(descriptor: int, mode: int, owner: tuple[int, int] | None) -> None:
    os.fchmod(descriptor, mode)
    if owner is not None:
        os.fchown(descriptor, *owner)


@contextlib.contextmanager
def _opened(base: str, steps: tuple[str, ...], maker: _Maker | None = None) -> Iterator[int]:
    try:
        here = os.open(base, _FOLDER)
    except OSError as error:
        raise BaseLost(error.errno, error.strerror) from None
    try:
        for step in steps:
            below = maker.step(here, step) if maker else os.open(step, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def _describe(name: str, folder: int) -> FileStat | None:
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    is_folder = stat.S_ISDIR(about.st_mode)
    if not is_folder and not stat.S_ISREG(about.st_mode):
        return None
    return FileStat(name, 0 if is_folder else about.st_size, is_folder)
