"""The findings of `forgehand doctor` on a page: looked for beside the requests, and remembered for a minute."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.errors import BotError
from sandbox.errors import SandboxError

log = logging.getLogger(__name__)

FRESH_SECONDS = 60.0


class CheckupLine(Protocol):
    """A line of the check-up."""

    @property
    def name(self) -> str: ...
    @property
    def level(self) -> str: ...
    @property
    def words(self) -> str: ...
    @property
    def fix(self) -> str: ...


Examine = Callable[[], Awaitable[Sequence[CheckupLine]]]


@dataclass(frozen=True)
class Examined:
    findings: Sequence[CheckupLine] = ()
    at: float | None = None
    """When they were found; None: not yet."""
    trouble: str = ""
    now: bool = False
    """A look is under way."""

    @property
    def amiss(self) -> list[CheckupLine]:
        return [one for one in self.findings if one.level != "good"]


class Examination:
    """Each look makes a sandbox and asks GitHub, so there is one at a time."""

    def __init__(self, examine: Examine, clock: Callable[[], float] = time.time) -> None:
        self._examine = examine
        self._clock = clock
        self._last = Examined()
        self._task: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Begin a look, unless one is under way or the last one is fresh."""
        old = self._last.at is None or not 0 <= self._clock() - self._last.at < FRESH_SECONDS
        if old and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    @property
    def latest(self) -> Examined:
        under_way = self._task is not None and not self._task.done()
        return Examined(self._last.findings, self._last.at, self._last.trouble, under_way)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            self._last = Examined(await self._examine(), self._clock())
        except (BotError, SandboxError, OSError) as error:
            log.warning("the check-up for the operator's page failed", extra={"error": str(error)})
            self._last = Examined((), self._clock(), str(error))
