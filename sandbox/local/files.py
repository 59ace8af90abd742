"""The host's hands in folders that belong to an agent: no link is followed, nothing but regular files is opened.

Every step of a path is opened on its own, below the step before it and without following a link, so that nothing
that is swapped meanwhile leads out. What is not a regular file is refused, and opening it never blocks.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import EnvironmentBusy, EnvironmentGone, NotThere, TooLarge
from sandbox.local.folders import Folders
from sandbox.primitives import FileStat

ENTRIES = 10_000
BLOCK = 1 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY


@dataclass(frozen=True)
class Files:
    """Of one environment; all calls block and belong into a thread."""

    folders: Folders
    uid: int | None
    """Whom new files are given to; None: they stay ours."""

    def read(self, path: str, offset: int, limit: int) -> bytes:
        with self._file(path) as descriptor:
            found = bytearray()
            while len(found) < limit:
                block = os.pread(descriptor, min(limit - len(found), BLOCK), offset + len(found))
                if not block:
                    break
                found += block
            return bytes(found)

    def size(self, path: str) -> int | None:
        """None when there is no regular file."""
        try:
            with self._file(path) as descriptor:
                return os.fstat(descriptor).st_size
        except NotThere:
            return None

    def download(self, path: str, target: Path, max_bytes: int) -> int:
        partial = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
        try:
            with self._file(path) as descriptor:
                if os.fstat(descriptor).st_size > max_bytes:
                    raise TooLarge(f"{path} is larger than {max_bytes} bytes")
                size = _copy(descriptor, partial, max_bytes, path)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        return size

    def list(self, path: str) -> list[FileStat]:
        with self._folder(*self.folders.behind(path), path) as folder, os.scandir(folder) as entries:
            names = [entry.name for entry in itertools.islice(entries, ENTRIES)]
            found = [_describe(name, folder) for name in sorted(names)]
        return [one for one in found if one is not None]

    def stat(self, path: str) -> FileStat | None:
        base, steps = self.folders.behind(path)
        try:
            if not steps:
                with self._folder(base, (), path) as folder:
                    about = os.fstat(folder)
                    return FileStat(path.rstrip("/").rpartition("/")[2], 0, True, about.st_mtime)
            with self._folder(base, steps[:-1], path) as folder:
                return _describe(steps[-1], folder)
        except NotThere:
            return None

    def write(self, path: str, feed: Callable[[int], None], *, executable: bool = False) -> None:
        """A new file that `feed` fills takes the place of the old one; readers see either, never a half."""
        base, steps = self.folders.behind(path)
        if not steps:
            raise NotThere(f"{path} is a folder")
        with self._folder(base, steps[:-1], path, make=True) as folder:
            partial = f".{secrets.token_hex(8)}.part"
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb", closefd=True, buffering=0) as file:
                    feed(file.fileno())
                    self._give(file.fileno(), 0o755 if executable else 0o644)
                os.rename(partial, steps[-1], src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(partial, dir_fd=folder)
                raise

    def _give(self, descriptor: int, mode: int) -> None:
        os.fchmod(descriptor, mode)
        if self.uid is not None:
            os.fchown(descriptor, self.uid, self.uid)

    @contextlib.contextmanager
    def _file(self, path: str) -> Iterator[int]:
        base, steps = self.folders.behind(path)
        if not steps:
            raise NotThere(f"{path} is a folder")
        with self._folder(base, steps[:-1], path) as folder, _translated(path):
            descriptor = os.open(steps[-1], _FILE, dir_fd=folder)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise NotThere(f"{path} is not a regular file")
                yield descriptor
            finally:
                os.close(descriptor)

    @contextlib.contextmanager
    def _folder(self, base: Path, steps: Sequence[str], path: str, *, make: bool = False) -> Iterator[int]:
        try:
            here = os.open(base, _FOLDER)
        except OSError:
            raise EnvironmentGone("the environment is not there any more") from None
        try:
            with _translated(path):
                for step in steps:
                    below = self._step(here, step, make)
                    os.close(here)
                    here = below
                yield here
        finally:
            os.close(here)

    def _step(self, here: int, step: str, make: bool) -> int:
        if make:
            try:
                os.mkdir(step, 0o700, dir_fd=here)
            except FileExistsError:
                return os.open(step, _FOLDER, dir_fd=here)
            below = os.open(step, _FOLDER, dir_fd=here)
            self._give(below, 0o755)
            return below
        return os.open(step, _FOLDER, dir_fd=here)


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise EnvironmentBusy(f"{path} could not be written: {error.strerror}") from None
        raise NotThere(f"{path}: {error.strerror}") from None


def _copy(descriptor: int, partial: Path, max_bytes: int, path: str) -> int:
    """Counts while it copies: the file may grow under our hands."""
    size = 0
    with partial.open("xb") as file:
        while block := os.read(descriptor, BLOCK):
            size += len(block)
            if size > max_bytes:
                raise TooLarge(f"{path} is larger than {max_bytes} bytes")
            file.write(block)
    return size


def _describe(name: str, folder: int) -> FileStat | None:
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    is_folder = stat.S_ISDIR(about.st_mode)
    if not is_folder and not stat.S_ISREG(about.st_mode):
        return None
    return FileStat(name, 0 if is_folder else about.st_size, is_folder, about.st_mtime)
