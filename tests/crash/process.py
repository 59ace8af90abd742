"""Starts and ends the service as a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash.nursery import ForkedProcess, forked
from tests.world import World

ROOT = Path(__file__).parent.parent.parent
START_SECONDS = 30.0
ALONE = "tests.crash.service"
"""The module for those who measure the service as a process of its own making."""


@dataclass
class Service:
    process: asyncio.subprocess.Process | ForkedProcess
    url: str

    @classmethod
    async def start(cls, world: World, kill_at: int = 0, module: str = "") -> Service | None:
        """None when it was killed before it could say where it listens. With a module it is started as anybody would,
        for those who measure it; otherwise it comes from the nursery."""
        with (world.root / "service.log").open("ab") as log:
            if module:
                process: asyncio.subprocess.Process | ForkedProcess = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    module,
                    str(kill_at),
                    cwd=ROOT,
                    env=world.environment,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=log,
                )
            else:
                process = await forked([ALONE, str(kill_at)], world.environment, log.fileno())
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            line = await process.stdout.readline()
        if not line:
            await process.wait()
            return None
        service = cls(process, line.decode().strip())
        world.app.webhook_url = f"{service.url}/webhook"
        return service

    async def dies_before(self, end: Coroutine[Any, Any, object]) -> None:
        """Until it was killed, or has come to the end, whichever is first. It is gone then."""
        waits = {asyncio.create_task(self.process.wait()), asyncio.create_task(end)}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        await self.kill()

    async def stop(self) -> int:
        """As a deploy does; how many transactions it had committed."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        assert self.process.stdout is not None
        async with asyncio.timeout(15):
            rest = await self.process.stdout.read()
            await self.process.wait()
        return int(rest.split()[-1]) if rest.split() else 0

    async def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
