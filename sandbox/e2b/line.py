"""Talks to one sandbox: short commands with answers, streams, uploads and downloads; keeps it alive.

A call may be repeated after the line broke. If it must not happen twice, it carries an id that the inside recognises.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from sandbox.e2b import faults
from sandbox.e2b.cloud import Cloud
from sandbox.e2b.heard import Heard, end, heed, let_go
from sandbox.e2b.inside import places
from sandbox.e2b.operations import ENVIRONMENT, command, opened
from sandbox.errors import EnvironmentBusy, SandboxError

if TYPE_CHECKING:
    from e2b import AsyncSandbox

OPEN_SECONDS = 15.0
SPARE_SECONDS = 60.0
PAUSES = (0.05, 0.3, 1.0)
UPLOAD_SECONDS = 600.0
HEARTBEAT_SECONDS = 60.0
ROOT = "root"


class SandboxLine:
    """A line that connects on first use. Every heartbeat gives the sandbox another `lifetime`."""

    def __init__(
        self,
        cloud: Cloud,
        sandbox_id: str,
        lifetime: float,
        sandbox: AsyncSandbox | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cloud = cloud
        self._clock = clock
        self.sandbox_id = sandbox_id
        self._lifetime = lifetime
        self._sandbox = sandbox
        self._connecting = asyncio.Lock()
        self._kept_at = clock()
        self._kept_until = self._kept_at + lifetime
        self._tasks: set[asyncio.Task[None]] = set()

    async def sandbox(self) -> AsyncSandbox:
        async with self._connecting:
            if self._sandbox is None:
                state = await self._cloud.state(self.sandbox_id)
                if state != "running":
                    raise faults.Paused("the sandbox is paused")
                await self.connect()
            assert self._sandbox is not None
            return self._sandbox

    async def connect(self) -> None:
        """Connect, and resume if needed; the sandbox may have another id from then on."""
        self._sandbox = await self._cloud.connect(self.sandbox_id)
        self.sandbox_id = self._sandbox.sandbox_id
        self._kept_at = self._clock()
        self._kept_until = self._kept_at + self._lifetime

    async def call(self, operation: str, *, seconds: float = 20.0, **request: Any) -> dict[str, Any]:
        """Do one operation of `inside.hands`; ask again if the line breaks before the answer."""
        await self.sandbox()
        await self.keep_for(seconds)
        deadline = time.monotonic() + seconds
        said = command(operation, request)
        for attempt in range(1000):
            try:
                return opened(await self._once(said, deadline), operation)
            except faults.Unclear:
                pause = PAUSES[min(attempt, len(PAUSES) - 1)]
                if time.monotonic() + pause >= deadline or (attempt >= len(PAUSES) and seconds <= SPARE_SECONDS):
                    raise
                await asyncio.sleep(pause)
        raise EnvironmentBusy(f"{operation}: the connection to the sandbox fails again and again")

    async def lines(self, operation: str, hear: Callable[[str], None], *, seconds: float, **request: Any) -> None:
        """Read a disposable stream, which may end at any time without notice."""
        sandbox = await self.sandbox()
        handle = await sandbox.commands.run(
            command(operation, {**request, "seconds": seconds}),
            background=True,
            user=ROOT,
            envs=ENVIRONMENT,
            timeout=seconds + SPARE_SECONDS,
            request_timeout=OPEN_SECONDS,
            on_stdout=hear,
            retain_output=False,
        )
        try:
            await handle.wait()
        finally:
            self._spawn(end(handle))

    async def upload(self, name: str, data: bytes | Callable[[], AsyncIterator[bytes]]) -> None:
        """Upload into a folder that only root can open. `data` may make a stream, once for each try."""
        path = f"{places.INCOMING}/{name}"
        for attempt, pause in enumerate((*PAUSES, 0.0)):
            try:
                sandbox = await self.sandbox()
                async with self._translated("uploading", UPLOAD_SECONDS):
                    content = data if isinstance(data, bytes) else data()
                    await sandbox.files.write(path, content, user=ROOT, request_timeout=UPLOAD_SECONDS)
            except faults.Unclear:
                if attempt == len(PAUSES):
                    raise
                await asyncio.sleep(pause)
            else:
                return

    async def install(self, files: dict[str, bytes]) -> None:
        """Bring our own code in, in one request."""
        from e2b.sandbox.filesystem.filesystem import WriteEntry

        sandbox = await self.sandbox()
        entries = [WriteEntry(path=path, data=data) for path, data in files.items()]
        async with self._translated("bringing our scripts in", OPEN_SECONDS * 4):
            await sandbox.files.write_files(entries, user=ROOT, request_timeout=OPEN_SECONDS * 4)

    async def download(self, name: str) -> AsyncGenerator[bytes, None]:
        """Yield a staged file; raise if the stream breaks."""
        sandbox = await self.sandbox()
        async with self._translated("downloading", OPEN_SECONDS):
            stream = await sandbox.files.read(f"{places.OUTGOING}/{name}", format="stream", user=ROOT)
        try:
            while True:
                async with self._translated("downloading", SPARE_SECONDS):
                    block = await anext(stream, None)
                if block is None:
                    return
                yield block
        finally:
            with suppress(Exception):
                await stream.aclose()

    async def remove(self, path: str) -> None:
        sandbox = await self.sandbox()
        async with self._translated("tidying up", OPEN_SECONDS):
            await sandbox.files.remove(path, user=ROOT, request_timeout=OPEN_SECONDS)

    async def keep_for(self, seconds: float) -> None:
        """Keep the sandbox alive while somebody uses it: the heartbeat."""
        now = self._clock()
        if now + seconds + SPARE_SECONDS > self._kept_until:
            await self.extend(max(self._lifetime, seconds + 2 * SPARE_SECONDS))
        elif now - self._kept_at > HEARTBEAT_SECONDS:
            self._kept_at = now
            self._spawn(self._beat())

    async def extend(self, seconds: float) -> None:
        self._kept_at = self._clock()
        await self._cloud.keep(self.sandbox_id, seconds)
        self._kept_until = self._kept_at + seconds

    def soon(self, operation: str, **request: Any) -> None:
        """Start a call without waiting for it."""

        async def work() -> None:
            with suppress(SandboxError):
                await self.call(operation, **request)

        self._spawn(work())

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def forget(self) -> None:
        """Drop the connection, which is useless after a pause."""
        self._sandbox = None

    async def _beat(self) -> None:
        with suppress(SandboxError):  # another beat follows soon, and calls report real trouble
            await self.extend(self._lifetime)

    async def _once(self, said: str, deadline: float) -> str:
        sandbox = await self.sandbox()
        heard = Heard()
        async with self._translated("a command", max(1.0, deadline - time.monotonic()) + OPEN_SECONDS):
            handle = await sandbox.commands.run(
                said,
                background=True,
                user=ROOT,
                envs=ENVIRONMENT,
                timeout=max(1.0, deadline - time.monotonic()) + SPARE_SECONDS,
                request_timeout=OPEN_SECONDS,
                on_stdout=heard.out,
                on_stderr=heard.err,
                retain_output=False,
            )
            over = asyncio.ensure_future(handle.wait())
            over.add_done_callback(heed)
            try:
                await heard.answer_or(over)
            finally:
                self._spawn(let_go(handle, over))
        return heard.answer

    @asynccontextmanager
    async def _translated(self, what: str, seconds: float) -> AsyncIterator[None]:
        """Limit a block's time and translate its errors into ours."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except SandboxError:
            raise
        except Exception as error:
            raise await faults.of_sandbox(error, what, lambda: self._cloud.state(self.sandbox_id)) from error

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
