"""The home of files in a bucket: one object for each version, uploaded in parts if it is large."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from pathlib import Path

from bot.settings import BucketSettings
from bot.store.base import Store
from bot.store.bucket.client import CALL_SECONDS, BucketClient
from bot.store.bucket.faults import BucketTrouble
from bot.store.file_home import StoredFile, append, pieces

log = logging.getLogger(__name__)

PART_BYTES = 8 << 20
"""A piece of a file in memory. S3 wants parts of at least 5 MiB, and at most 10,000."""
_VERSION = re.compile(r"[0-9]{12}-[0-9a-f]{32}")


class BucketHome:
    def __init__(self, store: Store, settings: BucketSettings, seconds: float = CALL_SECONDS) -> None:
        self._store = store
        self._prefix = settings.prefix
        self._client = BucketClient(settings, seconds)
        self.words = f"the bucket {settings.name}"

    async def put(self, file: StoredFile, path: Path) -> None:
        key, source = self._key(file), pieces(file, path, PART_BYTES)
        if file.size <= PART_BYTES:
            await self._client.put(key, await asyncio.to_thread(b"".join, source))
            return
        tags: list[str] = []
        try:
            upload = await self._client.begin(key)
            while (piece := await asyncio.to_thread(next, source, None)) is not None:
                tags.append(await self._client.put_part(key, upload, len(tags) + 1, piece))
            await self._client.complete(key, upload, tags, file.size)
        finally:
            await self._abort_all(key)

    async def _abort_all(self, key: str) -> None:
        """Leave no parts behind: of a failed upload, or of one whose id never reached us. The sweep comes by later."""
        try:
            async for page in self._client.uploads(key):
                for one, upload in page:
                    await self._client.abort(one, upload)
        except BucketTrouble as trouble:
            log.warning("an upload is left to the sweep", extra={"error": str(trouble)})

    async def bring(self, file: StoredFile, arriving: Path) -> bool:
        for start in range(0, file.size, PART_BYTES):
            piece = await self._client.get(self._key(file), start, min(PART_BYTES, file.size - start))
            if piece is None:
                return False
            await asyncio.to_thread(append, arriving, piece)
        return True

    async def lacks(self, files: Sequence[StoredFile]) -> list[StoredFile]:
        sizes: dict[str, int] = {}
        async for page in self._client.objects(self._prefix):
            sizes |= {one.key: one.size for one in page}
        return [one for one in files if sizes.get(self._key(one)) != one.size]

    async def remove(self, file: StoredFile) -> None:
        await self._client.delete(self._key(file))

    async def sweep(self, before: str) -> None:
        rows = await self._store.many("SELECT version FROM files")
        current = {row["version"] for row in rows}
        async for page in self._client.objects(self._prefix):
            for one in page:
                if _is_older(one.key, before) and _version(one.key) not in current:
                    await self._client.delete(one.key)
        async for uploads in self._client.uploads(self._prefix):
            for key, upload in uploads:
                if _is_older(key, before):
                    await self._client.abort(key, upload)

    async def look(self) -> None:
        async for _ in self._client.objects(self._prefix, 1):
            return

    async def close(self) -> None:
        await self._client.close()

    def _key(self, file: StoredFile) -> str:
        return f"{self._prefix}{file.name}.{file.version}"


def _version(key: str) -> str:
    return key.rpartition(".")[2]


def _is_older(key: str, before: str) -> bool:
    """Judge a key of ours; others may keep things in the bucket, too."""
    return _VERSION.fullmatch(_version(key)) is not None and _version(key) < before
