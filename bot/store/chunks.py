"""The home of files in the store itself: each row holds a part of a version, compressed."""

from __future__ import annotations

import asyncio
import base64
import zlib
from collections.abc import Sequence
from pathlib import Path

from bot.store.base import Store
from bot.store.file_home import StoredFile, append, pieces

CHUNK_BYTES = 1 << 20
"""How much of a file one row holds."""


class ChunkHome:
    words = "the database"

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, file: StoredFile, path: Path) -> None:
        insert = "INSERT INTO file_chunks (version, n, body) VALUES (:version, :n, :body)"
        source, n = pieces(file, path, CHUNK_BYTES), 0
        while (piece := await asyncio.to_thread(next, source, None)) is not None:
            body = await asyncio.to_thread(_packed, piece)
            await self._store.run(insert, version=file.version, n=n, body=body)
            n += 1

    async def bring(self, file: StoredFile, arriving: Path) -> bool:
        for n in range(_chunks(file)):
            sql = "SELECT body FROM file_chunks WHERE version = :version AND n = :n"
            row = await self._store.one(sql, version=file.version, n=n)
            if row is None:
                return False
            await asyncio.to_thread(_append_packed, arriving, row["body"])
        return True

    async def lacks(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        sql = "SELECT version, COUNT(*) AS n FROM file_chunks GROUP BY version"
        counts = {row["version"]: int(row["n"]) for row in await self._store.many(sql)}
        return [one for one in files if counts.get(one.version, 0) != _chunks(one)]

    async def remove(self, file: StoredFile) -> None:
        await self._store.run("DELETE FROM file_chunks WHERE version = :version", version=file.version)

    async def sweep(self, before: str) -> None:
        orphans = "DELETE FROM file_chunks WHERE version < :before AND version NOT IN (SELECT version FROM files)"
        await self._store.run(orphans, before=before)

    async def look(self) -> None:
        """The store answers for itself."""

    async def close(self) -> None:
        """The store closes itself."""


def _chunks(file: StoredFile) -> int:
    return -(-file.size // CHUNK_BYTES)


def _packed(piece: bytes) -> str:
    return base64.b64encode(zlib.compress(piece, 1)).decode("ascii")


def _append_packed(path: Path, body: str) -> None:
    append(path, zlib.decompress(base64.b64decode(body)))
