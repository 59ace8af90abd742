"""The demo's Forgehand: the real service in a separate process, which the demo can kill and start again.

`python -m bot.cli.demo_service` is that process. It gets its settings as one line on stdin, so that its arguments and
environment hold no secret. It ends when stdin does, so it never outlives the demo.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from bot.errors import BotError, SettingsError
from bot.simulation.github.accounts import App
from sandbox.errors import SandboxError

START_SECONDS, STOP_SECONDS = 60.0, 20.0


class DemoService:
    def __init__(self, values: Mapping[str, str], app: App, log: Path) -> None:
        self.isolation = ""
        self.url = ""
        """The address of its pages; each start changes it."""
        self.starts = 0
        self.up = False
        self._values = values
        self._app = app
        self._log = log
        self._process: Process | None = None
        self._one_at_a_time = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def running(cls, values: Mapping[str, str], app: App, log: Path) -> AsyncIterator[DemoService]:
        service = cls(values, app, log)
        try:
            await service._start()
            yield service
        finally:
            await service._stop()

    async def crash(self) -> None:
        """Kill the process as a power cut would, and start a new one on the same disk."""
        async with self._one_at_a_time:
            assert self._process is not None
            self.up = False
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            await self._start()

    async def _start(self) -> None:
        self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # -P: a module in the working directory, which anybody may have written, must not replace one of ours
        command = (sys.executable, "-P", "-m", "bot.cli.demo_service")
        with self._log.open("ab") as log:  # in a new session: Ctrl-C is for the demo, which then ends the service
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=log, start_new_session=True
            )
        answer = await self._answer(self._process)
        if "url" not in answer:
            raise SettingsError(answer.get("error") or f"Forgehand did not start; {self._log} says why.")
        self.url, self.isolation = answer["url"], answer["isolation"]
        self._app.webhook_url = f"{self.url}/webhook"
        self.starts += 1
        self.up = True

    async def _answer(self, process: Process) -> dict[str, str]:
        """Return its first line, which it prints once it listens; nothing if it ends before."""
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(dict(self._values)).encode() + b"\n")
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(START_SECONDS):
                await process.stdin.drain()
                line = await process.stdout.readline()
                return dict(json.loads(line)) if line else {}
        return {}

    async def _stop(self) -> None:
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


async def serve() -> None:
    from bot import app, settings

    values = json.loads(await asyncio.to_thread(sys.stdin.readline))
    try:
        async with app.running(settings.read(values)) as service:
            _tell(url=service.url, isolation=service.isolation)
            await asyncio.to_thread(sys.stdin.read)
    except (BotError, SandboxError) as error:
        _tell(error=str(error))


def _tell(**words: str) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve())
