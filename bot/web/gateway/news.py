"""Waiting for something to come on a connection, again and again, each time within a bound."""

from __future__ import annotations

import asyncio


class News:
    """All waits share a timer, which is seldom touched: one for each chunk of a stream costs as much as the chunk."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._awaited: asyncio.Future[None] | None = None
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def later(self, seconds: float) -> float:
        return self._loop.time() + seconds

    async def wait(self, until: float) -> None:
        """TimeoutError when nothing came."""
        self._until = until
        if self._timer is None or self._timer.when() > until:
            self.close()
            self._timer = self._loop.call_at(until, self._look)
        self._awaited = self._loop.create_future()
        try:
            await self._awaited
        finally:
            self._awaited = None

    def come(self) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """The timer was set for a wait that may be over."""
        self._timer = None
        if self._awaited is None or self._awaited.done():
            return
        if self._loop.time() < self._until:
            self._timer = self._loop.call_at(self._until, self._look)
        else:
            self._awaited.set_exception(TimeoutError())
