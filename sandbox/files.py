"""Handles the files of an environment for the host, and measures within a time limit the disk that they take."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import TypeVar

from sandbox.errors import EnvironmentBusy, EnvironmentGone, NotThere, TooLarge
from sandbox.primitives import Lease
from sandbox.runner.safe_files import BLOCK, FULL, BaseLost, FileStat, SafePath, put

T = TypeVar("T")


@dataclass(frozen=True)
class Files:
    """Files of one environment on this host. All calls block, so call them in a thread."""

    place: Callable[[str], SafePath]  # finds the file behind a path inside; raises NotThere
    uid: int | None  # owner of new files; None: they stay ours

    def read(self, path: str, offset: int, limit: int) -> bytes:
        with _translated(path):
            return self.place(path).read(offset, limit)

    def size(self, path: str) -> int:
        """Return 0 if there is no regular file."""
        found = self.stat(path)
        return 0 if found is None else found.size

    def download(self, path: str, target: Path, max_bytes: int) -> int:
        partial = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
        try:
            with partial.open("xb") as file, _translated(path):
                size = self.place(path).copy(file.write, max_bytes)
            if size is None:
                raise TooLarge(f"{path} is larger than {max_bytes} bytes")
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        return size

    def list(self, path: str) -> list[FileStat]:
        with _translated(path):
            return self.place(path).entries()

    def stat(self, path: str) -> FileStat | None:
        try:
            with _translated(path):
                return self.place(path).entry()
        except NotThere:
            return None

    def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        self._write(path, lambda to: put(to, data), executable=executable)

    def upload(self, source: Path, path: str) -> None:
        def feed(to: int) -> None:
            while block := file.read(BLOCK):
                put(to, block)

        try:
            file = source.open("rb")
        except FileNotFoundError:
            raise NotThere(f"{source.name} is not there on the host") from None
        with file:
            self._write(path, feed)

    def _write(self, path: str, feed: Callable[[int], None], *, executable: bool = False) -> None:
        owner = None if self.uid is None else (self.uid, self.uid)
        with _translated(path):
            self.place(path).write(feed, owner, executable=executable)


class HostEnvironment:
    """The part that all environments on this host share: their files. They cost nothing and have no limit of life."""

    def __init__(self, environment_id: str, files: Files) -> None:
        self._id = environment_id
        self.files = files

    @property
    def id(self) -> str:
        return self._id

    async def read(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes:
        return await self._in_thread(lambda: self.files.read(path, offset, limit))

    async def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        await self._in_thread(lambda: self.files.write(path, data, executable=executable))

    async def write_many(self, files: Mapping[str, bytes], *, executable: Collection[str] = ()) -> None:
        for path, data in files.items():
            await self.write(path, data, executable=path in executable)

    async def upload(self, source: Path, path: str) -> None:
        await self._in_thread(lambda: self.files.upload(source, path))

    async def download(self, path: str, target: Path, *, max_bytes: int) -> int:
        return await self._in_thread(lambda: self.files.download(path, target, max_bytes))

    async def stat(self, path: str) -> FileStat | None:
        return await self._in_thread(lambda: self.files.stat(path))

    async def left(self) -> float | None:
        return None

    async def lease(self) -> Lease | None:
        return None

    def _require(self) -> None:
        """Raise EnvironmentGone if the environment does not exist."""
        raise NotImplementedError

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Do blocking work; an unexpected OSError becomes EnvironmentBusy."""
        self._require()
        try:
            return await asyncio.to_thread(work)
        except OSError as error:
            raise EnvironmentBusy(f"the host refused: {error.strerror or type(error).__name__}") from None

    async def list(self, path: str) -> list[FileStat]:
        return await self._in_thread(lambda: self.files.list(path))


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except BaseLost:
        raise EnvironmentGone("the environment is not there any more") from None
    except OSError as error:
        if error.errno in FULL:
            raise EnvironmentBusy(f"{path} could not be written: {error.strerror}") from None
        raise NotThere(f"{path[:200]}: {error.strerror}") from None


SECONDS = 10.0
DISK_BLOCK = 1 << 20
_SECTOR = 512


@dataclass(frozen=True)
class DiskUsage:
    """A measurement. Unless it is `whole`, there is more: the time was up, or the folder was unreadable."""

    bytes: int
    files: int
    whole: bool


def measured_disk(folder: Path, seconds: float = SECONDS) -> DiskUsage:
    """Measure with `find`, which handles any tree: it prints each file's kind, sectors and number of names. Each of a
    file's names counts for a part of it."""
    command = ["find", str(folder), "-xdev", "-printf", "%y %b %n\\n"]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            try:
                return _counted(process, time.monotonic() + seconds)
            finally:
                process.kill()
    except OSError:
        return DiskUsage(0, 0, whole=False)


def _counted(process: subprocess.Popen[bytes], deadline: float) -> DiskUsage:
    assert process.stdout is not None
    total, files, rest = 0.0, 0, b""
    with DefaultSelector() as selector:
        selector.register(process.stdout, EVENT_READ)
        while (left := deadline - time.monotonic()) > 0 and selector.select(left):
            if not (data := os.read(process.stdout.fileno(), DISK_BLOCK)):
                return DiskUsage(int(total) * _SECTOR, files, whole=files > 0)
            *lines, rest = (rest + data).split(b"\n")
            files += len(lines)
            for line in lines:
                with contextlib.suppress(ValueError, ZeroDivisionError):
                    kind, sectors, names = line.split()
                    total += int(sectors) / (1 if kind == b"d" else int(names))
    return DiskUsage(int(total) * _SECTOR, files, whole=False)


OUTPUT_CAP = 1 << 20
PIPE_BLOCK = 1 << 16


async def feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


class Capped:
    """Keeps the first bytes of a stream and drops the rest, so that the writer never waits."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.truncated = False

    async def take(self, stream: asyncio.StreamReader | None) -> None:
        assert stream is not None
        while block := await stream.read(PIPE_BLOCK):
            room = OUTPUT_CAP - len(self.data)
            self.data += block[:room]
            self.truncated = self.truncated or len(block) > room
