"""Watches a file's growth inside: by a disposable command while the line holds, else by looking."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

from sandbox.e2b.faults import Paused
from sandbox.e2b.line import SandboxLine
from sandbox.errors import EnvironmentGone, SandboxError

LIFE_SECONDS = 50.0
SILENCE_SECONDS = 3.0
LOOK_SECONDS = 0.5
TELL_SECONDS = 1.0
FRESH_SECONDS = 1.5


class GrowthWatch:
    """One watched file. The command also reports the names that run, which go to `on_names`."""

    def __init__(self, line: SandboxLine, path: str, on_names: Callable[[frozenset[str]], None]) -> None:
        self._line = line
        self._path = path
        self._on_names = on_names
        self._said: asyncio.Queue[int] = asyncio.Queue()
        self._names: frozenset[str] | None = None
        self._urgent = False  # a name started or ended, which is worth a look even if the file is the same
        self._rest = ""
        self._task: asyncio.Task[None] | None = None

    async def sizes(self, known: int) -> AsyncGenerator[int, None]:
        """Yield a new size soon after a change, and some size every second."""
        try:
            told = time.monotonic()
            while True:
                self._open()
                size = await self._next(TELL_SECONDS - (time.monotonic() - told))
                if size in (None, known) and not self._urgent and time.monotonic() - told < TELL_SECONDS:
                    continue
                known, told, self._urgent = known if size is None else size, time.monotonic(), False
                yield known
        finally:
            await self.close()

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _next(self, seconds: float) -> int | None:
        """Wait for a size; return the last one that came meanwhile."""
        found: int | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.01, seconds)):
                found = await self._said.get()
        while not self._said.empty():
            found = self._said.get_nowait()
        return found

    def _open(self) -> None:
        if self._task is not None and self._task.done():
            task, self._task = self._task, None
            if not task.cancelled() and (error := task.exception()):
                raise error
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        """Open one stream after the other; look at the file while there is none."""
        while True:
            self._heard_at = time.monotonic()
            stream = asyncio.create_task(self._line.lines("watch", self._hear, seconds=LIFE_SECONDS, path=self._path))
            try:
                while not stream.done():
                    await asyncio.wait((stream,), timeout=LOOK_SECONDS)
                    if not stream.done() and time.monotonic() - self._heard_at > SILENCE_SECONDS:
                        break
            finally:
                stream.cancel()
                await asyncio.gather(stream, return_exceptions=True)
            self._rest = ""
            has_failed = stream.cancelled() or stream.exception() is not None
            if has_failed or time.monotonic() - self._heard_at > LOOK_SECONDS:
                await self._look()

    async def _look(self) -> None:
        try:
            found = await self._line.call("stat", seconds=5.0, paths=[self._path])
        except (EnvironmentGone, Paused):
            raise
        except SandboxError:
            await asyncio.sleep(LOOK_SECONDS)
            return
        entry = found["entries"][0]
        self._said.put_nowait(0 if entry is None else int(entry["size"]))
        await asyncio.sleep(LOOK_SECONDS / 2)

    def _hear(self, text: str) -> None:
        self._heard_at = time.monotonic()
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            size, _, names = line.partition(" ")
            if size.isdigit():
                known, self._names = self._names, frozenset(names.split(","))
                self._urgent = self._urgent or known not in (None, self._names)
                self._on_names(self._names)
                self._said.put_nowait(int(size))
