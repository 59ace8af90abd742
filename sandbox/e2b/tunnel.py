"""The way to the gateway for sandboxes that cannot reach us: we connect to them, and serve what comes back that way.

A few connections are always ready; one that an agent's is joined with is followed by a new one. Each carries one
connection of the agent's, so that a slow reader at one end slows the writer at the other, and nobody else.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from dataclasses import dataclass

from sandbox.e2b.call import HostCall
from sandbox.e2b.inside import places
from sandbox.e2b.inside.frames import Broken
from sandbox.e2b.line import SandboxLine
from sandbox.e2b.ports import target
from sandbox.e2b.settings import E2BSettings
from sandbox.errors import EnvironmentGone, SandboxError
from sandbox.runner import web

log = logging.getLogger(__name__)

READY = 3
MOST = 64  # connections of one sandbox at a time
TRIES = 3
STEADY_SECONDS = 10.0
PAUSES = (0.1, 0.5, 2.0, 5.0, 15.0)  # between tries: a sandbox may be paused, the network away


@dataclass(frozen=True)
class _Way:
    """Where the switchboard listens, and the key that it was given."""

    target: web.Target
    key: bytes


class Tunnel:
    """To one sandbox, from `start` to `close`; a line that breaks is made anew."""

    def __init__(self, line: SandboxLine, settings: E2BSettings) -> None:
        self._line = line
        self._settings = settings
        self._room = asyncio.Semaphore(MOST)
        self._calls: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def sandbox_id(self) -> str:
        return self._line.sandbox_id

    @property
    def is_open(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        tasks = [*self._calls, *([self._task] if self._task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._line.close()

    async def _run(self) -> None:
        """Asks where we are awaited and connects, again when that fails, until it is closed or the sandbox is gone."""
        failures = 0
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                await self._keep_ready(await self._way())
            except EnvironmentGone:
                return
            except (SandboxError, Broken) as error:
                log.debug("a sandbox is out of reach", extra={"sandbox": self.sandbox_id, "error": str(error)})
            failures = 0 if clock() - began > STEADY_SECONDS else failures + 1
            await asyncio.sleep(PAUSES[min(failures, len(PAUSES) - 1)])

    async def _way(self) -> _Way:
        """A key of its own for each time: it lies in a folder of root's inside, and here only in memory."""
        key, blob = secrets.token_hex(32).encode(), secrets.token_hex(12)
        await self._line.upload(blob, key)
        found = await self._line.call("gate", blob=blob)
        return _Way(target(await self._line.sandbox(), int(found["port"]), self._settings), key)

    async def _keep_ready(self, way: _Way) -> None:
        """Ends by an error when there is no getting through any more; what is under way goes on."""
        greeters = [asyncio.create_task(self._greet(way)) for _ in range(READY)]
        try:
            await asyncio.gather(*greeters)
        finally:
            for task in greeters:
                task.cancel()
            await asyncio.gather(*greeters, return_exceptions=True)

    async def _greet(self, way: _Way) -> None:
        failures = 0
        while True:
            await self._room.acquire()
            call = HostCall(way.target, way.key, self._gateway())
            try:
                await call.connect(places.GATE_PATH)
                failures = 0
                await call.until_wanted()
            except (OSError, TimeoutError, Broken) as error:
                self._let_go(call)
                failures += 1
                if failures >= TRIES:
                    raise Broken(f"no getting through ({type(error).__name__})") from None
                await asyncio.sleep(PAUSES[0])
            except BaseException:
                self._let_go(call)
                raise
            else:
                self._serve(call)

    def _serve(self, call: HostCall) -> None:
        async def work() -> None:
            try:
                with suppress(OSError, TimeoutError, Broken):
                    await call.serve()
            finally:
                self._let_go(call)

        task = asyncio.create_task(work())
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    def _let_go(self, call: HostCall) -> None:
        call.abort()
        self._room.release()

    def _gateway(self) -> tuple[str, int]:
        assert self._settings.gateway_address is not None
        return self._settings.gateway_address
