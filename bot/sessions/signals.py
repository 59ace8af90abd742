"""Wakes a running turn when something about it changed in the store (a stop was asked for, a message came)."""

from __future__ import annotations

import asyncio

from bot.models import TurnKey


class TurnSignals:
    """In-process only and losable: whoever waits looks at the store after waking, and now and then anyway."""

    def __init__(self) -> None:
        self._events: dict[TurnKey, asyncio.Event] = {}

    def poke(self, key: TurnKey) -> None:
        if event := self._events.get(key):
            event.set()

    async def wait(self, key: TurnKey, timeout: float) -> None:
        """Until poked, or the time is up."""
        event = self._events.setdefault(key, asyncio.Event())
        try:
            async with asyncio.timeout(timeout):
                await event.wait()
        except TimeoutError:
            pass
        event.clear()

    def forget(self, key: TurnKey) -> None:
        self._events.pop(key, None)
