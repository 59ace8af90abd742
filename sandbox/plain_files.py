"""Files of a plain environment: reads follow no link out of it and do not block on what is no regular file."""

from __future__ import annotations

import os
import shutil
import stat
import uuid
from pathlib import Path
from typing import BinaryIO

from sandbox.errors import NotThere, TooLarge
from sandbox.primitives import FileStat

BLOCK = 1 << 20


class PlainFiles:
    """Paths below one root; anything else is not there."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def read(self, path: str, offset: int, limit: int) -> bytes:
        with self._open(path) as file:
            file.seek(offset)
            return file.read(limit)

    def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        target = self._target(path)
        scratch = target.with_name(f".{uuid.uuid4().hex}.tmp")
        scratch.touch(mode=0o700 if executable else 0o600)
        scratch.write_bytes(data)
        scratch.replace(target)

    def upload(self, source: Path, path: str) -> None:
        target = self._target(path)
        scratch = target.with_name(f".{uuid.uuid4().hex}.tmp")
        shutil.copyfile(source, scratch)
        scratch.replace(target)

    def download(self, path: str, target: Path, max_bytes: int) -> int:
        size = 0
        with self._open(path) as file, target.open("wb") as out:
            while data := file.read(BLOCK):
                size += len(data)
                if size > max_bytes:
                    break
                out.write(data)
        if size > max_bytes:
            target.unlink()
            raise TooLarge(f"{path} is larger than {max_bytes} bytes")
        return size

    def list(self, path: str) -> list[FileStat]:
        folder = self._inside(path)
        if folder.is_symlink() or not folder.is_dir():
            raise NotThere(path)
        found = [self.stat(str(entry)) for entry in sorted(folder.iterdir())]
        return [entry for entry in found if entry]

    def stat(self, path: str) -> FileStat | None:
        try:
            found = self._inside(path).lstat()
        except (OSError, NotThere):
            return None
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            return None
        return FileStat(Path(path).name, found.st_size, stat.S_ISDIR(found.st_mode), found.st_mtime)

    def _open(self, path: str) -> BinaryIO:
        try:
            descriptor = os.open(self._inside(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise NotThere(f"{path}: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise NotThere(f"{path} is no regular file")
        return os.fdopen(descriptor, "rb")

    def _target(self, path: str) -> Path:
        target = self._inside(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NotThere(f"{path}: {error.strerror}") from None
        return target

    def _inside(self, path: str) -> Path:
        """The parents with their links resolved must be within; the last step is not followed by any caller."""
        wanted = Path(path)
        resolved = wanted.parent.resolve() / wanted.name
        if not resolved.is_relative_to(self._root) or wanted.name in ("", ".."):
            raise NotThere(f"{path[:200]!r} is not in this environment")
        return resolved


def remove_tree(folder: Path) -> None:
    """Also where folders were made unreadable."""
    for current, folders, _ in os.walk(folder):
        for name in folders:
            inner = Path(current) / name
            if not inner.is_symlink():
                inner.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
