"""Files that outlive a step: transcripts, checkpoints, work that could not be pushed, output of checks.

They lie in the data directory. If the store is on PostgreSQL, it has them too, in chunks, so that a service on another
machine finds them; the directory is then only this machine's copy."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from bot.errors import StoreError
from bot.settings import Address
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import CHUNK_BYTES, Database, run

PATTERNS = ("transcripts/*.jsonl", "kept/*", "checks/*.log", "turns/*/checkpoint.bundle")
"""Where files of this kind are in the data directory."""
_ABANDONED_SECONDS = 86_400.0


@dataclass(frozen=True)
class StoredFile(Record):
    name: str
    version: str
    size: int
    sha256: str


class KeptFiles:
    """`shared`: the store has the bytes too. Names are paths below the data directory."""

    def __init__(self, store: Store, folder: Path, *, shared: bool) -> None:
        self._store = store
        self._folder = folder
        self._shared = shared

    @classmethod
    def of(cls, store: Store, folder: Path, database: Address) -> Self:
        return cls(store, folder, shared=not isinstance(database, Path))

    def path(self, name: str) -> Path:
        """Return where the file lies on this machine, if it is here."""
        return self._folder / name

    async def save(self, name: str) -> None:
        """Store the file as it lies here now; safe to repeat. Readers see the former one until this is done."""
        if not self._shared:
            return
        path = self.path(name)
        size, digest = await asyncio.to_thread(_measure, path)
        known = await self._known(name)
        if known is not None and known.sha256 == digest:
            return
        version, chunks, n = f"{int(self._store.now()):012}-{uuid.uuid4().hex}", _chunks(path), 0
        while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
            insert = "INSERT INTO file_chunks (version, n, body) VALUES (:version, :n, :body)"
            await self._store.run(insert, version=version, n=n, body=chunk)
            n += 1
        await self._store.write(lambda db: self._publish(db, StoredFile(name, version, size, digest), known))

    def _publish(self, db: Database, file: StoredFile, known: StoredFile | None) -> None:
        upsert = """
        INSERT INTO files (name, version, size, sha256, at) VALUES (:name, :version, :size, :sha256, :at)
        ON CONFLICT (name) DO UPDATE SET version = :version, size = :size, sha256 = :sha256, at = :at
        """
        values = {"name": file.name, "version": file.version, "size": file.size, "sha256": file.sha256}
        run(db, upsert, at=self._store.now(), **values)
        if known is not None:
            run(db, "DELETE FROM file_chunks WHERE version = :version", version=known.version)

    async def fetch(self, name: str) -> Path | None:
        """Bring the file to this machine unless it is here; None if there is none."""
        path = self.path(name)
        known = await self._known(name) if self._shared else None
        if known is None:
            return path if await asyncio.to_thread(path.is_file) else None
        if await asyncio.to_thread(_is, path, known):
            return path
        arriving = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.partial")
        await asyncio.to_thread(_prepare, self._folder, arriving)
        try:
            for n in range(-(-known.size // CHUNK_BYTES)):
                sql = "SELECT body FROM file_chunks WHERE version = :version AND n = :n"
                row = await self._store.one(sql, version=known.version, n=n)
                if row is None:  # a newer version has replaced it meanwhile
                    return await self.fetch(name)
                await asyncio.to_thread(_append, arriving, row["body"])
            if not await asyncio.to_thread(_is, arriving, known):
                raise StoreError(f"The stored file {name} is damaged. Restore a backup of the database.")
            await asyncio.to_thread(arriving.replace, path)
        finally:
            await asyncio.to_thread(arriving.unlink, missing_ok=True)
        return path

    async def names(self, prefix: str) -> list[str]:
        """List the files here and in the store whose names start like this."""
        folder = self.path(prefix).parent
        here = await asyncio.to_thread(lambda: [one for one in folder.glob("*") if one.is_file()])
        found = {one.relative_to(self._folder).as_posix() for one in here if not one.name.endswith(".partial")}
        if self._shared:
            sql = "SELECT name FROM files WHERE SUBSTR(name, 1, :length) = :prefix"
            found |= {row["name"] for row in await self._store.many(sql, length=len(prefix), prefix=prefix)}
        return sorted(one for one in found if one.startswith(prefix))

    async def save_all(self) -> int:
        """Store every file that lies here; return how many."""
        found = [path for pattern in PATTERNS for path in sorted(self._folder.glob(pattern)) if path.is_file()]
        for path in found:
            await self.save(path.relative_to(self._folder).as_posix())
        return len(found)

    async def fetch_all(self) -> int:
        """Bring every stored file to this machine; return how many."""
        rows = await self._store.many("SELECT name FROM files ORDER BY name")
        for row in rows:
            await self.fetch(row["name"])
        return len(rows)

    async def forget(self, *names: str) -> None:
        """Remove files, here and in the store."""
        for name in names:
            await asyncio.to_thread(self.path(name).unlink, missing_ok=True)
            if self._shared:
                await self._store.write(partial(_forget, name=name))

    async def forget_older(self, folder: str, before: float) -> None:
        """Remove the files of a folder that were saved before a time, and what interrupted saves have left."""
        await asyncio.to_thread(_remove_older, self.path(folder), before)
        if self._shared:
            sql = "SELECT name FROM files WHERE SUBSTR(name, 1, :length) = :prefix AND at < :before"
            prefix = f"{folder}/"
            rows = await self._store.many(sql, length=len(prefix), prefix=prefix, before=before)
            await self.forget(*(row["name"] for row in rows))
            abandoned = f"{int(self._store.now() - _ABANDONED_SECONDS):012}"
            orphans = (
                "DELETE FROM file_chunks WHERE version < :abandoned AND version NOT IN (SELECT version FROM files)"
            )
            await self._store.run(orphans, abandoned=abandoned)

    async def _known(self, name: str) -> StoredFile | None:
        return await StoredFile.one(self._store, "SELECT * FROM files WHERE name = :name", name=name)


def _forget(db: Database, *, name: str) -> None:
    chunks = "DELETE FROM file_chunks WHERE version IN (SELECT version FROM files WHERE name = :name)"
    run(db, chunks, name=name)
    run(db, "DELETE FROM files WHERE name = :name", name=name)


def _chunks(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        while piece := file.read(CHUNK_BYTES):
            yield base64.b64encode(zlib.compress(piece, 1)).decode("ascii")


def _append(path: Path, body: str) -> None:
    with path.open("ab") as file:
        file.write(zlib.decompress(base64.b64decode(body)))


def _prepare(data_dir: Path, path: Path) -> None:
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)  # parents of a folder get no mode
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)


def _measure(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()


def _is(path: Path, known: StoredFile) -> bool:
    return path.is_file() and path.stat().st_size == known.size and _measure(path)[1] == known.sha256


def _remove_older(folder: Path, before: float) -> None:
    if folder.is_dir():
        for file in folder.iterdir():
            if file.is_file() and file.stat().st_mtime < before:
                file.unlink(missing_ok=True)
