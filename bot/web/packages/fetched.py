"""Notes which packages a turn has got, and stores them together: a client asks for hundreds within a second."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from bot.errors import TransientError
from bot.models import TurnKey
from bot.registries.shape import PackageName
from bot.store import packages
from bot.store.base import Store
from bot.store.packages import FetchedPackage

log = logging.getLogger("bot.web.packages")

SOON_SECONDS = 0.5
MOST_HELD = 10_000


class FetchedPackages:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[tuple[TurnKey, str, PackageName], FetchedPackage] = {}
        self._storing: asyncio.Task[None] | None = None

    def note(self, key: TurnKey, registry: str, package: PackageName, size: int, *, cached: bool) -> None:
        """Count one download; it is stored in a moment."""
        name = (key, registry, package)
        known = self._held.get(name)
        if known is None and len(self._held) >= MOST_HELD:
            return
        self._held[name] = FetchedPackage(
            key.session,
            key.n,
            registry,
            package.name[:200],
            package.version[:100],
            (known.downloads if known else 0) + 1,
            (known.bytes if known else 0) + size,
            (known.from_cache if known else 0) + int(cached),
        )
        if self._storing is None or self._storing.done():
            self._storing = asyncio.create_task(self._soon())

    async def close(self) -> None:
        if self._storing is not None:
            self._storing.cancel()
            await asyncio.wait({self._storing})
        with contextlib.suppress(TransientError):
            await self._store_held()

    async def _soon(self) -> None:
        while self._held:
            await asyncio.sleep(SOON_SECONDS)
            try:
                await self._store_held()
            except TransientError as error:
                log.warning("downloads are stored later", extra={"error": str(error)})

    async def _store_held(self) -> None:
        held = dict(self._held)
        if held:
            await packages.add(self._store, list(held.values()))
        for name, one in held.items():
            if self._held.get(name) is one:
                del self._held[name]
