"""Runs background loops (period, back-off after errors, last success), and takes long work off the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Literal, TypeVar

from bot.errors import BotError, TransientError
from sandbox.errors import SandboxError

log = logging.getLogger(__name__)

LoopName = Literal[
    "admission",
    "beats",
    "bulletins",
    "check_runs",
    "ci_rounds",
    "claims",
    "delivery_log",
    "cli_requests",
    "copies",
    "dashboards",
    "intake",
    "lateness",
    "purging",
    "queue",
    "snapshots",
    "strays",
    "takeovers",
    "unsaid",
]
"""A label in `/metrics`."""
LONGEST_REST_SECONDS = 10.0
"""The rest doubles with each error up to this; a longer first rest stays as it is."""
QUIET_SECONDS = 600.0
"""The least time between two log lines about one kind of error in one loop."""
CANCEL_AGAIN_SECONDS = 1.0


class Loop:
    """Calls `look` until it is cancelled; `look` returns the seconds until the next call, or None for the period."""

    def __init__(
        self,
        name: LoopName,
        look: Callable[[], Awaitable[float | None]],
        every_seconds: float,
        *,
        rest_seconds: float = 0.0,
    ) -> None:
        """`rest_seconds` is the least rest after an error that does not pass by itself."""
        self.name = name
        self.failures = 0
        self.succeeded_at: float | None = None
        """Wall-clock time."""
        self.has_ended = False
        self._look = look
        self._every = every_seconds
        self._rest = max(rest_seconds, every_seconds)
        self._wakes = asyncio.Event()
        self._in_a_row = 0
        self._quiet_until: dict[type[Exception], float] = {}
        self._beside: set[asyncio.Task[None]] = set()
        self._well_at = time.monotonic()

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last success, or since the loop was made."""
        return time.monotonic() - self._well_at

    def wake(self) -> None:
        self._wakes.set()

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start work beside the loop; it is cancelled with the loop."""
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return task

    async def run(self) -> None:
        try:
            while True:
                self._wakes.clear()
                pause = await self._once()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._wakes.wait()
        finally:
            self.has_ended = True
            for task in self._beside:
                task.cancel()
            await asyncio.gather(*self._beside, return_exceptions=True)

    async def _once(self) -> float:
        try:
            pause = await self._look()
        except (BotError, SandboxError, OSError) as error:
            pause, is_news = self._failed(error)
            if is_news:
                passes = isinstance(error, (TransientError, SandboxError, OSError))
                about = {"loop": self.name, "error": str(error), "again_in": pause}
                log.log(logging.WARNING if passes else logging.ERROR, "a loop failed; it goes on", extra=about)
            return pause
        except Exception as error:  # the loop outlives a bug
            pause, is_news = self._failed(error)
            if is_news:
                log.exception("a loop met a bug; it goes on", extra={"loop": self.name, "again_in": pause})
            return pause
        if self._in_a_row:
            log.info("a loop works again", extra={"loop": self.name, "failures": self._in_a_row})
        self._in_a_row = 0
        self.succeeded_at, self._well_at = time.time(), time.monotonic()
        return self._every if pause is None else pause

    def _failed(self, error: Exception) -> tuple[float, bool]:
        """Count an error; return the rest that follows, and whether it is worth a log line."""
        self.failures += 1
        self._in_a_row += 1
        first, asked = self._rest, 0.0
        if isinstance(error, TransientError):
            first, asked = self._every, error.retry_after or 0.0
        doubled = min(first * 2.0 ** min(self._in_a_row - 1, 20), LONGEST_REST_SECONDS)
        now = time.monotonic()
        is_news = now >= self._quiet_until.get(type(error), 0.0)
        if is_news:
            self._quiet_until[type(error)] = now + QUIET_SECONDS
        return max(first, doubled, asked), is_news


@contextlib.asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        while not task.done():  # a library may turn a cancellation into another error, and the loop goes on
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_AGAIN_SECONDS)
        await asyncio.gather(task, return_exceptions=True)


T = TypeVar("T")
PORTION_SECONDS = 0.01
LARGE_BODY = 1 << 20
"""Bytes that take some 10 ms to hash or decode; 25 MB take 100 ms and more."""
LONG_TEXT = 2_000
"""Characters that take our slowest reader some 10 ms."""


async def in_portions(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield the items, with breaks for other tasks; each must be short work by itself."""
    began = time.perf_counter()
    for item in items:
        yield item
        if time.perf_counter() - began > PORTION_SECONDS:
            await asyncio.sleep(0)
            began = time.perf_counter()


async def beside(work: Callable[[], T], *, size: int, most: int) -> T:
    """Do the work, in a thread if its size is above `most`."""
    return await asyncio.to_thread(work) if size > most else work()


async def made_of(text: str, make: Callable[[str], T]) -> T:
    return await beside(partial(make, text), size=len(text), most=LONG_TEXT)
