"""A clock that runs with the world's and can be pushed ahead; awaiting a push sees done what fell due."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

Work = Callable[[], Awaitable[None]]


class Timer:
    """Something that happens once, at a time of the clock."""

    def __init__(self, when: float, work: Work) -> None:
        self.when = when
        self.work = work
        self.handle: asyncio.TimerHandle | None = None


class Clock:
    def __init__(self) -> None:
        self._ahead = 0.0
        self._timers: set[Timer] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def now(self) -> float:
        return time.time() + self._ahead

    def at(self, when: float, work: Work) -> Timer:
        timer = Timer(when, work)
        self._timers.add(timer)
        self._arm(timer)
        return timer

    def cancel(self, timer: Timer | None) -> None:
        if timer is not None:
            self._timers.discard(timer)
            if timer.handle is not None:
                timer.handle.cancel()

    def advance(self, seconds: float) -> asyncio.Future[None]:
        """Takes effect at once; awaited, everything that fell due by it is done."""
        self._ahead += seconds
        due = sorted((each for each in self._timers if each.when <= self.now()), key=lambda each: each.when)
        tasks = [task for task in map(self._fire, due) if task is not None]
        for timer in list(self._timers):
            self._arm(timer)
        return asyncio.ensure_future(self._all(tasks))

    async def sleep_until(self, when: float) -> None:
        reached = asyncio.Event()

        async def tell() -> None:
            reached.set()

        timer = self.at(when, tell)
        try:
            await reached.wait()
        finally:
            self.cancel(timer)

    async def close(self) -> None:
        for timer in list(self._timers):
            self.cancel(timer)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @staticmethod
    async def _all(tasks: list[asyncio.Task[None]]) -> None:
        await asyncio.gather(*tasks)

    def _arm(self, timer: Timer) -> None:
        if timer.handle is not None:
            timer.handle.cancel()
        delay = max(0.0, timer.when - self.now())
        timer.handle = asyncio.get_running_loop().call_later(delay, self._fire, timer)

    def _fire(self, timer: Timer) -> asyncio.Task[None] | None:
        if timer not in self._timers:
            return None
        self.cancel(timer)
        task = asyncio.ensure_future(self._run(timer.work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @staticmethod
    async def _run(work: Work) -> None:
        await work()
