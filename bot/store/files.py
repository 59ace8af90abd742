"""Files that outlive a step: transcripts, checkpoints, work that could not be pushed, output of checks.

They lie in the data directory. If the store is on PostgreSQL, or a bucket is set, a `FileHome` has them too, so that a
service on another machine finds them; the directory is then only this machine's copy."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import os
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Self

from bot.errors import BotError, StoreError
from bot.settings import BucketSettings
from bot.store.base import Store
from bot.store.chunks import ChunkHome
from bot.store.file_home import FileHome, StoredFile
from bot.store.rows import Database, run

log = logging.getLogger(__name__)

PATTERNS = ("transcripts/*.jsonl", "kept/*", "checks/*.log", "changes/*.patch", "turns/*/*.bundle")
"""Where files of this kind are in the data directory."""
_ABANDONED_SECONDS = 86_400.0
_COPY_SECONDS = 3600.0
"""A younger file may not be stored yet."""


class KeptFiles:
    """Names are paths below the data directory.

    The first of the homes takes what is saved; the others may still hold what was saved before. Without any, the
    directory is all."""

    def __init__(self, store: Store, folder: Path, homes: tuple[FileHome, ...] = ()) -> None:
        self._store = store
        self._folder = folder
        self._homes = homes

    @classmethod
    def of(cls, store: Store, folder: Path, bucket: BucketSettings | None) -> Self:
        chunks = ChunkHome(store)
        if bucket is None:
            return cls(store, folder, (chunks,) if store.is_remote else ())
        from bot.store.bucket.home import BucketHome

        return cls(store, folder, (BucketHome(store, bucket), chunks))

    @classmethod
    @asynccontextmanager
    async def opened(cls, store: Store, folder: Path, bucket: BucketSettings | None) -> AsyncIterator[Self]:
        files = cls.of(store, folder, bucket)
        try:
            yield files
        finally:
            await files.close()

    async def close(self) -> None:
        for home in self._homes:
            await home.close()

    @property
    def home(self) -> FileHome | None:
        """Return the home that takes what is saved."""
        return self._homes[0] if self._homes else None

    @property
    def beside(self) -> str | None:
        """Say where the files are if a copy of the store has none of them."""
        if self.home is None:
            return "the data directory"
        return None if isinstance(self.home, ChunkHome) else self.home.words

    def path(self, name: str) -> Path:
        """Return where the file lies on this machine, if it is here."""
        return self._folder / name

    async def save(self, name: str) -> None:
        """Store the file as it lies here now; safe to repeat. Readers see the former one until this is done."""
        if not self._homes:
            return
        file, known = await self._measured(name), await self._known(name)
        if known is not None and known.sha256 == file.sha256:
            return
        await self._put(file)
        if known is not None:
            await self._remove(known)

    async def _measured(self, name: str) -> StoredFile:
        size, digest = await asyncio.to_thread(_measure, self.path(name))
        return StoredFile(name, _version(self._store.now()), size, digest)

    async def _put(self, file: StoredFile) -> None:
        await self._homes[0].put(file, self.path(file.name))
        await self._store.write(partial(self._publish, file=file))

    def _publish(self, db: Database, file: StoredFile) -> None:
        upsert = """
        INSERT INTO files (name, version, size, sha256, at) VALUES (:name, :version, :size, :sha256, :at)
        ON CONFLICT (name) DO UPDATE SET version = :version, size = :size, sha256 = :sha256, at = :at
        """
        values = {"name": file.name, "version": file.version, "size": file.size, "sha256": file.sha256}
        run(db, upsert, at=self._store.now(), **values)

    async def fetch(self, name: str) -> Path | None:
        """Bring the file to this machine unless it is here; None if there is none."""
        path = self.path(name)
        known = await self._known(name) if self._homes else None
        if known is None:
            return path if await asyncio.to_thread(path.is_file) else None
        if await asyncio.to_thread(_is, path, known):
            return path
        arriving = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.partial")
        try:
            if await self._bring(known, arriving):
                await asyncio.to_thread(arriving.replace, path)
                return path
        finally:
            await asyncio.to_thread(arriving.unlink, missing_ok=True)
        if await self._known(name) != known:  # a newer version has replaced it meanwhile
            return await self.fetch(name)
        log.error("a stored file is lost; `forgehand db check` lists such files", extra={"file": name})
        return path if await asyncio.to_thread(path.is_file) else None

    async def _bring(self, known: StoredFile, arriving: Path) -> bool:
        for home in self._homes:
            await asyncio.to_thread(_prepare, self._folder, arriving)
            if await home.bring(known, arriving):
                if not await asyncio.to_thread(_is, arriving, known):
                    raise StoreError(f"The stored file {known.name} is damaged. Restore a backup of {home.words}.")
                return True
        return False

    async def names(self, prefix: str) -> list[str]:
        """List the files here and in the store whose names start like this."""
        here = await asyncio.to_thread(lambda: [one for one in self._folder.glob(f"{prefix}*") if one.is_file()])
        found = {one.relative_to(self._folder).as_posix() for one in here if not one.name.endswith(".partial")}
        found |= {one.name for one in await self._stored(prefix)}
        return sorted(one for one in found if one.startswith(prefix))

    async def save_all(self) -> int:
        """Store every file that lies here; return how many."""
        found = [path for pattern in PATTERNS for path in sorted(self._folder.glob(pattern)) if path.is_file()]
        for path in found:
            await self.save(path.relative_to(self._folder).as_posix())
        return len(found)

    async def move(self, target: KeptFiles) -> int:
        """Bring every file to where `target` keeps its files, and remove it here; return how many there are now.

        If it is interrupted, run it again. A file that is lost stays listed."""
        count = 0
        for known in await self._stored():
            if await self.fetch(known.name) is None:
                continue
            if target.home is not None:
                await target._put(await target._measured(known.name))
            else:
                await self._store.run("DELETE FROM files WHERE name = :name", name=known.name)
                count += 1
            await self._remove(known)
        return count + (await target.save_all() if target.home is not None else 0)

    async def missing(self) -> list[str]:
        """Name the stored files that no home has whole."""
        files = await self._stored()
        for home in self._homes:
            files = await home.lacks(files)
        return [f"the stored file {one.name} is missing or incomplete" for one in files]

    async def forget(self, *names: str) -> None:
        """Remove files, here and in the store."""
        for name in names:
            await asyncio.to_thread(self.path(name).unlink, missing_ok=True)
            if self._homes and (known := await self._known(name)) is not None:
                sql = "DELETE FROM files WHERE name = :name AND version = :version"
                await self._store.run(sql, name=name, version=known.version)
                await self._remove(known)

    async def forget_older(self, folder: str, before: float) -> None:
        """Remove the files of a folder that were saved before a time."""
        await asyncio.to_thread(_remove_older, self.path(folder), before)
        await self.forget(*(one.name for one in await self._stored(f"{folder}/", before)))

    async def forget_copies(self) -> None:
        """Remove what lies here, and was forgotten for all since."""
        if not self._homes:
            return
        found = [path for pattern in PATTERNS for path in self._folder.glob(pattern) if _is_older(path, _COPY_SECONDS)]
        known = {one.name for one in await self._stored()}
        for path in found:
            if path.relative_to(self._folder).as_posix() not in known:
                await asyncio.to_thread(path.unlink, missing_ok=True)

    async def sweep(self) -> None:
        """Remove what interrupted saves have left in the homes."""
        for home in self._homes:
            await home.sweep(_version(self._store.now() - _ABANDONED_SECONDS))

    async def _remove(self, file: StoredFile) -> None:
        """Remove the bytes of a version that no row names; if that fails, the sweep does it."""
        for home in self._homes:
            try:
                await home.remove(file)
            except BotError as error:
                log.warning("a file is left to the sweep", extra={"file": file.name, "error": str(error)})

    async def _known(self, name: str) -> StoredFile | None:
        return await StoredFile.one(self._store, "SELECT * FROM files WHERE name = :name", name=name)

    async def _stored(self, prefix: str = "", before: float = math.inf) -> list[StoredFile]:
        if not self._homes:
            return []
        sql = "SELECT * FROM files WHERE SUBSTR(name, 1, :length) = :prefix AND at < :before ORDER BY name"
        return await StoredFile.many(self._store, sql, length=len(prefix), prefix=prefix, before=before)


def _version(at: float) -> str:
    return f"{int(at):012}-{uuid.uuid4().hex}"


def _prepare(data_dir: Path, path: Path) -> None:
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)  # parents of a folder get no mode
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    os.truncate(path, 0)


def _measure(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()


def _is(path: Path, known: StoredFile) -> bool:
    return path.is_file() and path.stat().st_size == known.size and _measure(path)[1] == known.sha256


def _is_older(path: Path, seconds: float) -> bool:
    return path.is_file() and path.stat().st_mtime < time.time() - seconds


def _remove_older(folder: Path, before: float) -> None:
    if folder.is_dir():
        for file in folder.iterdir():
            if file.is_file() and file.stat().st_mtime < before:
                file.unlink(missing_ok=True)
