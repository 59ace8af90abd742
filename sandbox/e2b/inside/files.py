"""Files of the agent in root's hands: no link is followed, nothing but regular files is opened.

Every step of a path is opened on its own, below the step before it and without following a link, so that nothing
that is swapped meanwhile leads out of the folders that are the agent's.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import itertools
import json
import os
import secrets
import shutil
import stat as modes
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from . import places
from .hands import Refused

ENTRIES = 10_000
BLOCK = 1 << 20
WORTH_PACKING = 1 << 10
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY


def packed(data: bytes) -> dict[str, Any]:
    small = zlib.compress(data, 1) if len(data) >= WORTH_PACKING else data
    return {"data": base64.b64encode(small).decode("ascii"), "packed": len(data) >= WORTH_PACKING}


def read(request: dict[str, Any]) -> dict[str, Any]:
    found = bytearray()
    with _file(request["path"]) as descriptor:
        while len(found) < request["limit"]:
            block = os.pread(descriptor, min(request["limit"] - len(found), BLOCK), request["offset"] + len(found))
            if not block:
                break
            found += block
    return packed(bytes(found))


def stage(request: dict[str, Any]) -> dict[str, Any]:
    """A copy that the agent can neither change nor swap while the host downloads it."""
    target = Path(places.OUTGOING, request["name"])
    with _file(request["path"]) as descriptor, target.open("xb") as copy:
        size = 0
        if os.fstat(descriptor).st_size > request["most"]:
            size = request["most"] + 1
        while size <= request["most"]:
            block = os.read(descriptor, BLOCK)
            if not block:
                return {"size": size}
            size += len(block)
            copy.write(block)
    target.unlink()
    raise Refused("large", f"{request['path']} is larger than {request['most']} bytes")


def list(request: dict[str, Any]) -> dict[str, Any]:  # noqa: A001 - operations are named as the host names them
    with _folder(*_behind(request["path"]), request["path"]) as folder, os.scandir(folder) as entries:
        names = [entry.name for entry in itertools.islice(entries, ENTRIES)]
        found = [_describe(name, folder) for name in sorted(names)]
    return {"entries": [one for one in found if one is not None]}


def stat(request: dict[str, Any]) -> dict[str, Any]:
    """With several paths in one go: each one's entry, or null."""
    return {"entries": [_entry(path) for path in request["paths"]]}


def size_of(path: str) -> int:
    entry = _entry(path)
    return entry["size"] if entry is not None else 0


def put(request: dict[str, Any]) -> dict[str, Any]:
    """Take apart what the host has uploaded: a line that names the files, then their contents one after the other."""
    blob = Path(places.INCOMING, request["blob"])
    with blob.open("rb") as data:
        for entry in json.loads(data.readline()):
            _write(entry["path"], data, entry["size"], executable=entry["executable"])
    blob.unlink()
    return {}


def _write(path: str, data: IO[bytes], size: int, *, executable: bool) -> None:
    """A new file takes the place of the old one; readers see either, never a half."""
    base, steps = _behind(path)
    if not steps:
        raise Refused("absent", f"{path} is a folder")
    with _folder(base, steps[:-1], path, make=True) as folder:
        partial = "." + secrets.token_hex(8) + ".part"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                _copy(data, file, size)
                _give(file.fileno(), 0o755 if executable else 0o644)
            os.rename(partial, steps[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(partial, dir_fd=folder)
            raise


def _copy(data: IO[bytes], file: IO[bytes], size: int) -> None:
    left = size
    while left:
        block = data.read(min(left, BLOCK))
        if not block:
            raise Refused("busy", "an upload arrived cut off")
        left -= len(block)
        while block:
            block = block[file.write(block) :]


def _give(descriptor: int, mode: int) -> None:
    os.fchmod(descriptor, mode)
    if os.geteuid() == 0:
        os.fchown(descriptor, *places.identity())


def _entry(path: str) -> dict[str, Any] | None:
    try:
        base, steps = _behind(path)
        if not steps:
            with _folder(base, (), path) as folder:
                about = os.fstat(folder)
            return {"name": Path(path).name, "size": 0, "folder": True, "modified": about.st_mtime}
        with _folder(base, steps[:-1], path) as folder:
            return _describe(steps[-1], folder)
    except Refused:
        return None


def _describe(name: str, folder: int) -> dict[str, Any] | None:
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    is_folder = modes.S_ISDIR(about.st_mode)
    if not is_folder and not modes.S_ISREG(about.st_mode):
        return None
    size = 0 if is_folder else about.st_size
    return {"name": name, "size": size, "folder": is_folder, "modified": about.st_mtime}


def _behind(path: str) -> tuple[str, tuple[str, ...]]:
    """The folder of ours at or above a path, and the steps from there."""
    parts = path.split("/")
    if path.startswith("/") and ".." not in parts and "\0" not in path:
        for base in places.BASES:
            if path == base or path.startswith(base + "/"):
                return base, tuple(part for part in path[len(base) :].split("/") if part not in ("", "."))
    raise Refused("absent", f"{path[:200]} is not in a folder that the host may open")


@contextlib.contextmanager
def _file(path: str) -> Iterator[int]:
    base, steps = _behind(path)
    if not steps:
        raise Refused("absent", f"{path} is a folder")
    with _folder(base, steps[:-1], path) as folder, _translated(path):
        descriptor = os.open(steps[-1], _FILE, dir_fd=folder)
        try:
            if not modes.S_ISREG(os.fstat(descriptor).st_mode):
                raise Refused("absent", f"{path} is not a regular file")
            yield descriptor
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _folder(base: str, steps: tuple[str, ...], path: str, *, make: bool = False) -> Iterator[int]:
    with _translated(path):
        here = os.open(base, _FOLDER)
        try:
            for step in steps:
                below = _step(here, step, make)
                os.close(here)
                here = below
            yield here
        finally:
            os.close(here)


def _step(here: int, step: str, make: bool) -> int:
    if make:
        try:
            os.mkdir(step, 0o700, dir_fd=here)
        except FileExistsError:
            return os.open(step, _FOLDER, dir_fd=here)
        below = os.open(step, _FOLDER, dir_fd=here)
        _give(below, 0o755)
        return below
    return os.open(step, _FOLDER, dir_fd=here)


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = "busy" if error.errno in _FULL else "absent"
        raise Refused(kind, f"{path}: {error.strerror}") from None


def empty(folder: str) -> None:
    """Of what earlier calls have left, on root's own side."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            Path(entry.path).unlink()
