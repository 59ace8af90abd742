"""Connects to sandboxes that cannot reach us, so that their agents reach the gateway.

A few connections are always ready. When an agent uses one, a new one follows. Each carries one connection of the agent,
so a slow reader at one end slows only its own writer.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sandbox.e2b.call import HostCall
from sandbox.e2b.exposure import target
from sandbox.e2b.inside import places
from sandbox.e2b.inside.frames import Broken
from sandbox.e2b.line import SandboxLine
from sandbox.e2b.settings import E2BSettings
from sandbox.errors import EnvironmentGone, SandboxError
from sandbox.runner import web

log = logging.getLogger(__name__)

READY = 3
MOST = 64  # connections of one sandbox at a time
TRIES = 3
STEADY_SECONDS = 10.0
PAUSES = (0.1, 0.5, 2.0, 5.0, 15.0)  # between tries; a sandbox may be paused, the network down


@dataclass(frozen=True)
class _Way:
    """The switchboard's address, and the key that we gave it."""

    target: web.Target
    key: bytes


class Tunnel:
    """A tunnel to one sandbox, from `start` to `close`. It repairs a broken line."""

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
        """Ask for the switchboard's port and connect; repeat after failures, until `close` or the sandbox is gone."""
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
        """Bring in a new key, which is in a folder of root inside and only in memory here; return the way."""
        key, blob = secrets.token_hex(32).encode(), secrets.token_hex(12)
        await self._line.upload(blob, key)
        found = await self._line.call("gate", blob=blob)
        return _Way(target(await self._line.sandbox(), int(found["port"]), self._settings), key)

    async def _keep_ready(self, way: _Way) -> None:
        """Keep connections ready until connecting fails; present ones go on after that."""
        greeters = [asyncio.create_task(self._greet(way)) for _ in range(READY)]
        try:
            await asyncio.gather(*greeters)
        finally:
            for task in greeters:
                task.cancel()
            await asyncio.gather(*greeters, return_exceptions=True)

    async def _greet(self, way: _Way) -> None:
        failures = 0
        assert self._settings.gateway_address is not None
        while True:
            await self._room.acquire()
            call = HostCall(way.target, way.key, self._settings.gateway_address)
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


class Tunnels:
    """One tunnel for each environment in use, by its key. Environments that can reach the gateway get none."""

    def __init__(self, settings: E2BSettings, line: Callable[[str, object], SandboxLine]) -> None:
        self._settings = settings
        self._line = line
        self._open: dict[str, Tunnel] = {}

    async def open(self, key: str, line: SandboxLine, egress: Sequence[str] | None, *, replace: bool = False) -> None:
        """Open a tunnel, or keep the present one. `replace`: close the present one in any case."""
        if self._settings.gateway_address is None or not self._settings.by_tunnel(egress):
            return
        found = self._open.get(key)
        if found is not None and found.is_open and found.sandbox_id == line.sandbox_id and not replace:
            return
        await self.close(key)
        # The tunnel needs a separate line, because the environment's ends with the turn's step.
        tunnel = self._open[key] = Tunnel(self._line(line.sandbox_id, await line.sandbox()), self._settings)
        tunnel.start()

    async def close(self, key: str) -> None:
        if (found := self._open.pop(key, None)) is not None:
            await found.close()

    async def close_all(self) -> None:
        for key in list(self._open):
            await self.close(key)
