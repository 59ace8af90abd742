"""The open sessions with MCP servers: one for each turn and server. They end with their turn, or unused."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.web.mcp.remote import RemoteServer

log = logging.getLogger(__name__)

LOOK_SECONDS = 3.0
IDLE_SECONDS = 600.0
MOST_SESSIONS = 256

Place = tuple[str, str]
"""The digest of a turn's token, and the server's name."""


@dataclass
class _Held:
    server: RemoteServer
    stored_at: float
    """When the server was stored: another address or credential needs another session."""
    used_at: float


class OpenSessions:
    def __init__(self, is_live: Callable[[str], Awaitable[bool]], look_seconds: float = LOOK_SECONDS) -> None:
        """`is_live` tells by a token's digest whether its turn still runs."""
        self._is_live = is_live
        self._look_seconds = look_seconds
        self._held: dict[Place, _Held] = {}
        self._watch: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._held)

    def of(self, place: Place, stored_at: float, make: Callable[[], RemoteServer]) -> RemoteServer:
        held = self._held.get(place)
        if held is None or held.stored_at != stored_at:
            self._drop(place)
            while len(self._held) >= MOST_SESSIONS:
                self._drop(min(self._held, key=lambda one: self._held[one].used_at))
            held = self._held[place] = _Held(make(), stored_at, 0.0)
        held.used_at = asyncio.get_running_loop().time()
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._until_none())
        return held.server

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        for place in list(self._held):
            self._drop(place)
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _until_none(self) -> None:
        while self._held:
            await asyncio.sleep(self._look_seconds)
            before = asyncio.get_running_loop().time() - IDLE_SECONDS
            for place, held in list(self._held.items()):
                if held.used_at < before or not await self._is_live(place[0]):
                    self._drop(place)

    def _drop(self, place: Place) -> None:
        held = self._held.pop(place, None)
        if held is not None:
            task = asyncio.create_task(held.server.end())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
