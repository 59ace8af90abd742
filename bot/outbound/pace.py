"""Make one change after another for each installation, and none while GitHub asked us to wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from bot.errors import GitHubUnavailable
from bot.models import InstallationId, RepoId, Thread

PATIENCE_SECONDS = 2.0
"""A change that takes longer holds up only its own thread. GitHub asks for one at a time. While it does not answer, a
few beside each other are far from the hundred that it allows."""


class WritePace:
    """Lives in memory: after a restart the first refusal teaches it again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changing: WeakValueDictionary[InstallationId, asyncio.Lock] = WeakValueDictionary()
        self._threads: WeakValueDictionary[tuple[RepoId, int], asyncio.Lock] = WeakValueDictionary()
        self._paused_until: dict[InstallationId, float] = {}

    @asynccontextmanager
    async def turn(self, thread: Thread) -> AsyncIterator[None]:
        """Wait for the changes before this one; during a pause, raise GitHubUnavailable with the time to wait."""
        of_thread = self._threads.setdefault((thread.repo.id, thread.number), asyncio.Lock())
        of_all = self._changing.setdefault(thread.installation, asyncio.Lock())
        async with of_thread, _for_a_while(of_all):
            wait = self.pause(thread.installation)
            if wait > 0:
                raise GitHubUnavailable("GitHub asked us to wait.", wait)
            try:
                yield
            except GitHubUnavailable as error:
                if error.retry_after is not None:
                    self._paused_until[thread.installation] = self._clock() + error.retry_after
                raise

    def pause(self, installation: InstallationId) -> float:
        """Return the seconds until changes may be made again."""
        return max(0.0, self._paused_until.get(installation, 0.0) - self._clock())


@asynccontextmanager
async def _for_a_while(lock: asyncio.Lock) -> AsyncIterator[None]:
    """Hold the lock to the end of the block, or until others have waited long enough."""
    await lock.acquire()
    held = True

    def let_go() -> None:
        nonlocal held
        if held:
            held = False
            lock.release()

    timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, let_go)
    try:
        yield
    finally:
        timer.cancel()
        let_go()
