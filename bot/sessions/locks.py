"""One at a time for each session: who takes its environment, lays it to rest or ends it waits for the others."""

from __future__ import annotations

import asyncio
import weakref

from bot.models import SessionId


class Locks:
    """In-process only: what must hold across a crash is decided in the store."""

    def __init__(self) -> None:
        self._locks: weakref.WeakValueDictionary[SessionId, asyncio.Lock] = weakref.WeakValueDictionary()

    def of(self, session: SessionId) -> asyncio.Lock:
        return self._locks.setdefault(session, asyncio.Lock())
