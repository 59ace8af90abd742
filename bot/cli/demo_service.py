"""The demo's Forgehand: the real service in a separate process, which the demo can kill and start again.

`python -m bot.cli.demo_service` is that process. It gets its settings as one line on stdin, so that its arguments and
environment hold no secret. It ends when stdin does, so it never outlives the demo.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.errors import BotError, SettingsError
from bot.settings import database
from bot.simulation.github.accounts import App
from sandbox.choice import choose
from sandbox.errors import SandboxError

STALE = ("repositories", "turns", "transcripts", "kept")
START_SECONDS, STOP_SECONDS = 60.0, 20.0


class ServiceProcess:
    """The real service in a process that can be killed and started again on the same disk."""

    def __init__(self, values: Mapping[str, str], log: Path) -> None:
        self.url = ""
        """The address of its pages; each start changes it."""
        self.isolation = ""
        self.replica = ""
        """Its name among the replicas, if there are any; each start changes it."""
        self.starts = 0
        self.values = values
        self._log = log
        self._process: Process | None = None

    async def start(self) -> None:
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
        self.url, self.isolation, self.replica = answer["url"], answer["isolation"], answer["replica"]
        self.starts += 1

    async def _answer(self, process: Process) -> dict[str, str]:
        """Return its first line, which it prints once it listens; nothing if it ends before."""
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(dict(self.values)).encode() + b"\n")
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(START_SECONDS):
                await process.stdin.drain()
                line = await process.stdout.readline()
                return dict(json.loads(line)) if line else {}
        return {}

    async def kill(self) -> None:
        """Kill it as a power cut would."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        self.url = ""

    async def stop(self) -> None:
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def placed(values: Mapping[str, str], data_dir: Path) -> AsyncIterator[ServiceProcess]:
    """Forget the last demo's data, and lend a service that can start there. At the end it stops, and its sandboxes end:
    sessions outlive their service, and the next demo cannot use them."""
    _forget(data_dir)
    process = ServiceProcess({**values, "FORGEHAND_DATA_DIR": str(data_dir)}, data_dir.with_suffix(".log"))
    try:
        yield process
    finally:
        await process.stop()
        choice = await choose(data_dir / "environments")
        for left in await choice.provider.find({}):
            await left.terminate()
        await choice.provider.close()


def _forget(data_dir: Path) -> None:
    """Keep only the unpacked tools of the environments, which are large."""
    for name in STALE:
        shutil.rmtree(data_dir / name, ignore_errors=True)
    for pattern in ("state.db*", "engine.db*"):
        for file in data_dir.glob(pattern):
            file.unlink()
    data_dir.with_suffix(".log").unlink(missing_ok=True)


class DemoService:
    """One service, which a crash restarts."""

    crash_label = "Crash Forgehand and restart it"
    secrets: tuple[str, ...] = ()
    """Secrets that it has beside its settings."""

    def __init__(self, process: ServiceProcess, app: App, database: Path) -> None:
        self.up = False
        self._process = process
        self._app = app
        self._database = database
        self._one_at_a_time = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def running(cls, values: Mapping[str, str], app: App, folder: Path) -> AsyncIterator[DemoService]:
        data_dir = folder / "data"
        async with placed(values, data_dir) as process:
            service = cls(process, app, database.in_folder(data_dir))
            await service._start()
            yield service

    async def crash(self) -> None:
        """Kill the process, and start a new one on the same disk."""
        async with self._one_at_a_time:
            self.up = False
            await self._process.kill()
            await self._start()

    async def _start(self) -> None:
        await self._process.start()
        self._app.webhook_url = f"{self.url}/webhook"
        self.up = True

    @property
    def values(self) -> Mapping[str, str]:
        """Return its settings, as a command beside it needs them."""
        return self._process.values

    @property
    def url(self) -> str:
        return self._process.url

    @property
    def isolation(self) -> str:
        return self._process.isolation

    @property
    def starts(self) -> int:
        return self._process.starts

    @property
    def status(self) -> list[str]:
        if not self.up:
            return ["Forgehand was killed and is restarting …"]
        if self.starts > 1:
            return [f"Forgehand is running; it was killed and restarted {self.starts - 1} ×."]
        return ["Forgehand is running. A crash sends SIGKILL to its process; afterwards it continues where it was."]

    @property
    def happened(self) -> list[str]:
        """What is worth a sentence at the end."""
        return []

    def told(self) -> dict[str, Any]:
        """Return what happened to it, for a script."""
        return {"service_starts": self.starts}

    async def stored(self) -> Path:
        """Return a file with all rows."""
        return self._database


async def serve() -> None:
    from bot import app, settings

    values = json.loads(await asyncio.to_thread(sys.stdin.readline))
    try:
        async with app.running(settings.read(values)) as service:
            _tell(url=service.url, isolation=service.isolation, replica=service.replica or "")
            await asyncio.to_thread(sys.stdin.read)
    except (BotError, SandboxError) as error:
        _tell(error=str(error))


def _tell(**words: str) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve())
