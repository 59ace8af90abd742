"""Packages and indexes that registries have answered, kept on this machine for an account's next sessions.

    packages/ACCOUNT/answers/HASH-OF-THE-QUESTION    which bytes answered, with their type and ETag
    packages/ACCOUNT/bytes/SHA256                    the bytes
    packages/arriving/…                              not complete yet; nobody reads these

Bytes are named by their hash and hashed again before they are used, so a torn or damaged file is a miss. A large file
is hashed again only after it has changed. One process holds a data directory, so the sizes in memory are true.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import logging
import os
import time
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

log = logging.getLogger(__name__)

BYTES, ANSWERS = "bytes", "answers"
BLOCK = 1 << 20
OpenBytes = io.BufferedReader | io.BytesIO
FileState = tuple[int, int, int]
"""Inode, size and time of the last change."""
HEAD_SIZE = 4096
"""The bytes that a question's file takes on a disk. Any number of questions may have the same bytes for an answer."""
_SHARE = 2
"""One account has at most this part of the room."""


class CachedHead(msgspec.Struct, frozen=True):
    """Describes an answer."""

    sha256: str
    size: int
    content_type: str
    etag: str = ""
    url: str = ""
    """Its address, after redirects: relative addresses in it start there."""
    at: float = 0.0
    """When the registry last said so."""


@dataclass
class CachedAnswer:
    """An answer whose bytes were verified; they stay readable even if they are evicted meanwhile."""

    head: CachedHead
    _file: OpenBytes

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            while block := await self._read():
                yield block
        finally:
            self._file.close()

    async def _read(self) -> bytes:
        if isinstance(self._file, io.BytesIO):
            return self._file.read()
        return await asyncio.to_thread(self._file.read, BLOCK)

    async def body(self) -> bytes:
        return b"".join([block async for block in self.chunks()])

    def close(self) -> None:
        self._file.close()


@dataclass
class ArrivingRoom:
    """Counts the bytes of all answers on their way: a session may ask for many large ones at once."""

    most: int
    taken: int = 0


@dataclass
class ArrivingAnswer:
    """Bytes on their way into the cache; they are removed unless `keep` takes them."""

    path: Path
    _file: BinaryIO
    _room: ArrivingRoom
    _digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    _held: list[bytes] = field(default_factory=list)
    _waiting: int = 0
    size: int = 0
    _is_given_up: bool = False

    async def write(self, block: bytes) -> None:
        """Take a block; of an answer for which there is no room, nothing is kept."""
        if self._is_given_up:
            return
        self.size += len(block)
        self._room.taken += len(block)
        if self._room.taken > self._room.most:
            self._is_given_up = True
            self._held, self._waiting = [], 0
            await asyncio.to_thread(self._file.truncate, 0)
            self._room.taken, self.size = self._room.taken - self.size, 0
            return
        self._held.append(block)
        self._waiting += len(block)
        if self._waiting >= BLOCK:
            await asyncio.to_thread(self._flush)

    async def finish(self) -> str | None:
        """Return the hash of the whole; None for one that is too large."""
        if self._is_given_up:
            return None
        await asyncio.to_thread(self._flush)
        await asyncio.to_thread(self._file.close)
        return self._digest.hexdigest()

    def _flush(self) -> None:
        held, self._held, self._waiting = b"".join(self._held), [], 0
        self._digest.update(held)
        self._file.write(held)

    def close(self) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)


class PackageCache:
    """Holds at most `room` bytes, and drops what was not used for longest."""

    def __init__(self, folder: Path, room: int, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder / "packages"
        self._room = room
        self._clock = clock
        self._used: OrderedDict[tuple[str, str], int] = OrderedDict()
        """Sizes by account and path below its folder, the last used at the end."""
        self._totals: dict[str, int] = {}
        self._hashed: dict[Path, FileState] = {}
        """Large files that this process has found whole, as they were then."""
        self._arriving = ArrivingRoom(room // _SHARE)
        self._changing = asyncio.Lock()
        self._is_read = False

    async def find(self, account: str, question: str) -> CachedAnswer | None:
        """Return the answer to a question if it is here and whole."""
        await self._read()
        place = self._answer(account, question)
        head, file = await asyncio.to_thread(_found, place, self._bytes(account), self._hashed)
        if head is None:
            return None
        if file is None:
            await asyncio.to_thread(place.unlink, missing_ok=True)
            self._forget((account, f"{BYTES}/{head.sha256}"))
            self._forget((account, f"{ANSWERS}/{place.name}"))
            return None
        self._use(account, f"{BYTES}/{head.sha256}", head.size)
        self._use(account, f"{ANSWERS}/{place.name}", HEAD_SIZE)
        return CachedAnswer(head, file)

    @asynccontextmanager
    async def arriving(self) -> AsyncIterator[ArrivingAnswer]:
        """Take an answer's bytes; call `keep` when they are complete."""
        await self._read()
        folder = self._folder / "arriving"
        path = folder / uuid.uuid4().hex
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True, mode=0o700)
        answer = ArrivingAnswer(path, await asyncio.to_thread(path.open, "xb"), self._arriving)
        try:
            yield answer
        finally:
            self._arriving.taken -= answer.size
            await asyncio.to_thread(answer.close)

    async def keep(
        self, account: str, question: str, answer: ArrivingAnswer, content_type: str, etag: str = "", url: str = ""
    ) -> CachedHead | None:
        """Keep a complete answer. Others who fetched the same meanwhile have written the same bytes."""
        sha256 = await answer.finish()
        if sha256 is None:
            return None
        head = CachedHead(sha256, answer.size, content_type, etag, url, self._clock())
        target, place = self._bytes(account) / sha256, self._answer(account, question)
        async with self._changing:
            await asyncio.to_thread(_publish, answer.path, target, place, head)
            self._use(account, f"{BYTES}/{sha256}", head.size)
            self._use(account, f"{ANSWERS}/{place.name}", HEAD_SIZE)
            await asyncio.to_thread(_remove, self._evicted(account))
        return head

    async def confirm(self, account: str, question: str, head: CachedHead) -> None:
        """Note that the registry has confirmed an answer now."""
        renewed = msgspec.structs.replace(head, at=self._clock())
        await asyncio.to_thread(_write_head, self._answer(account, question), renewed)

    def age(self, head: CachedHead) -> float:
        """Return how long ago the registry has last said so."""
        return self._clock() - head.at

    @property
    def size(self) -> int:
        return sum(self._totals.values())

    def _use(self, account: str, path: str, size: int) -> None:
        name = (account, path)
        if name not in self._used:
            self._totals[account] = self._totals.get(account, 0) + size
        self._used[name] = size
        self._used.move_to_end(name)

    def _forget(self, name: tuple[str, str]) -> Path:
        self._totals[name[0]] = self._totals.get(name[0], 0) - self._used.pop(name, 0)
        path = self._folder / name[0] / name[1]
        self._hashed.pop(path, None)
        return path

    def _evicted(self, account: str) -> list[Path]:
        gone = []
        for name in list(self._used):
            own = self._totals.get(account, 0) > self._room // _SHARE
            if not own and self.size <= self._room:
                break
            if own and self.size <= self._room and name[0] != account:
                continue
            gone.append(self._forget(name))
        return gone

    async def _read(self) -> None:
        async with self._changing:
            if self._is_read:
                return
            for account, path, size in await asyncio.to_thread(_listed, self._folder):
                self._use(account, path, size)
            self._is_read = True

    def _bytes(self, account: str) -> Path:
        return self._folder / account / BYTES

    def _answer(self, account: str, question: str) -> Path:
        return self._folder / account / ANSWERS / hashlib.sha256(question.encode()).hexdigest()


def _head(place: Path) -> CachedHead | None:
    try:
        return msgspec.json.decode(place.read_bytes(), type=CachedHead)
    except (OSError, ValueError):
        return None


def _found(place: Path, folder: Path, hashed: dict[Path, FileState]) -> tuple[CachedHead | None, OpenBytes | None]:
    head = _head(place)
    return head, None if head is None else _verified(folder / head.sha256, hashed)


def _verified(path: Path, hashed: dict[Path, FileState]) -> OpenBytes | None:
    """Open bytes that are still what their name says. A large file is hashed once: a client may ask again and again."""
    try:
        file: OpenBytes = path.open("rb")
    except OSError:
        return None
    status = os.fstat(file.fileno())
    state = (status.st_ino, status.st_size, status.st_mtime_ns)
    if status.st_size <= BLOCK:
        with file as small:
            file = io.BytesIO(small.read())  # so that it is read once, and in this thread
    if hashed.get(path) != state and hashlib.file_digest(file, "sha256").hexdigest() != path.name:
        log.warning("a cached package is damaged and is fetched again", extra={"sha256": path.name})
        file.close()
        path.unlink(missing_ok=True)
        return None
    file.seek(0)
    if status.st_size > BLOCK:
        hashed[path] = state
    with contextlib.suppress(OSError):  # it was evicted just now
        os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))  # the time of its last use
    return file


def _publish(arrived: Path, target: Path, place: Path, head: CachedHead) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    arrived.replace(target)
    _write_head(place, head)


def _write_head(place: Path, head: CachedHead) -> None:
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = place.with_name(f"{place.name}.{uuid.uuid4().hex[:8]}")
    partial.write_bytes(msgspec.json.encode(head))
    partial.replace(place)


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _listed(folder: Path) -> list[tuple[str, str, int]]:
    """List the files that are here, the last used at the end; remove what is incomplete or without bytes."""
    _remove(list((folder / "arriving").glob("*")))
    held = {path: path.stat() for path in folder.glob(f"*/{BYTES}/*")}
    found = [(status.st_atime, path, status.st_size) for path, status in held.items()]
    for place in folder.glob(f"*/{ANSWERS}/*"):
        head = _head(place)
        bytes_of = place.parent.parent / BYTES / head.sha256 if head else None
        if bytes_of not in held or "." in place.name:
            place.unlink(missing_ok=True)
        else:
            found.append((held[bytes_of].st_atime, place, HEAD_SIZE))
    found.sort(key=lambda one: one[0])
    return [(path.parent.parent.name, f"{path.parent.name}/{path.name}", size) for _, path, size in found]
