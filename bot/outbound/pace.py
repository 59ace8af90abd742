"""One change at a time for each installation, and none while GitHub asked us to wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from bot.errors import GitHubUnavailable
from bot.models import InstallationId, Thread


class Pace:
    """In memory: after a restart the first refusal teaches it again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._writing: dict[InstallationId, asyncio.Lock] = {}
        self._paused_until: dict[InstallationId, float] = {}

    @asynccontextmanager
    async def turn(self, thread: Thread) -> AsyncIterator[None]:
        """Wait for the changes before this one; GitHubUnavailable with the time to wait during a pause."""
        installation = thread.installation
        async with self._writing.setdefault(installation, asyncio.Lock()):
            wait = self.pause(installation)
            if wait > 0:
                raise GitHubUnavailable("GitHub asked us to wait.", wait)
            try:
                yield
            except GitHubUnavailable as error:
                if error.retry_after is not None:
                    self._paused_until[installation] = self._clock() + error.retry_after
                raise

    def pause(self, installation: InstallationId) -> float:
        """Seconds until changes may be made again."""
        return max(0.0, self._paused_until.get(installation, 0.0) - self._clock())
