"""Where attacks happen: the service in a process of its own, a neighbour of another account, and who watches."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bot.simulation.github.accounts import Installation
from bot.simulation.github.state import Repository
from bot.simulation.github.threads import Issue
from tests.crash.process import ROOT, Service
from tests.loop import lag
from tests.loop.lag import Lag
from tests.world import World
from tests.world.plain_http import plain_client

NEIGHBOUR = "neighbour/shop"
STATUS_SECONDS = 120.0
"""How long a measurement waits for an answer to `status`; by then it has long failed."""
QUIET_SECONDS = 1.0
"""Between two questions of the neighbour's."""


@dataclass
class Health:
    slowest: float
    asked: int
    refused: int


@dataclass
class Found:
    """What one attack has done to everybody else."""

    name: str
    health: Health
    lag: Lag
    status: list[float] = field(default_factory=list)
    """Seconds until `status` of another account was answered, one after the other."""
    seconds: float = 0.0

    @property
    def slowest_status(self) -> float:
        return max(self.status, default=0.0)


Attack = Callable[["Field"], Awaitable[object]]


@dataclass
class Field:
    world: World
    service: Service
    probe: asyncio.subprocess.Process
    neighbours: Repository
    neighbour: Issue
    """Its thread, which nobody attacks."""
    installation: Installation

    @classmethod
    @asynccontextmanager
    async def open(cls, root: Path, /, **changes: str) -> AsyncIterator[Field]:
        async with World.running(root, **{"FORGEHAND_ACCOUNTS": "octo-org, neighbour", **changes}) as world:
            world.github.user("mallory")
            repo = world.github.create_repo(NEIGHBOUR, files={"README.md": "# shop\n"}, private=True)
            world.github.user("bob")
            repo.grant("bob", "write")
            installation = world.github.install(world.app, repos=[repo])
            issue = world.github.open_issue(repo, title="Ours", body="Nobody attacks this.", by="bob")
            service, probe = await _begun(world)
            one = cls(world, service, probe, repo, issue, installation)
            try:
                await one.ready()
                yield one
            finally:
                await one._end()

    async def restart(self, while_down: Callable[[], Awaitable[object]] | None = None) -> None:
        """As after a kill; `while_down` happens while nobody serves."""
        await self.service.kill()
        await _ended(self.probe)
        if while_down is not None:
            await while_down()
        self.service, self.probe = await _begun(self.world)

    async def ready(self) -> None:
        async with plain_client(base_url=self.service.url, timeout=30) as client, asyncio.timeout(60):
            while (await client.get("/readyz")).status_code != 200:
                await asyncio.sleep(0.05)
        await self.status()

    async def status(self) -> float:
        """Seconds until the neighbour's `/claude status` is answered."""

        began = time.monotonic()
        asked = self.world.say("/claude status", by="bob", on=self.neighbour)
        await self.world.github.changed(lambda: bool(asked.reactions), STATUS_SECONDS)
        return time.monotonic() - began

    async def meet(self, name: str, attack: Attack) -> Found:
        """Let it happen, with the neighbour asking for `status` all the while, once more right after it."""
        await self._lag()
        await self._health()
        began, status = time.monotonic(), []
        happening = asyncio.ensure_future(attack(self))
        try:
            while not happening.done():
                status.append(await self.status())
                await asyncio.wait({happening}, timeout=QUIET_SECONDS)
            await happening
            status.append(await self.status())
        finally:
            happening.cancel()
            await asyncio.gather(happening, return_exceptions=True)
        return Found(name, await self._health(), await self._lag(), status, time.monotonic() - began)

    async def settled(self, timeout: float = 120.0) -> None:
        """Until every webhook was answered and what came of it is in the ledger."""
        await self.world.github.idle(timeout)
        async with asyncio.timeout(timeout):
            while self.waiting():
                await asyncio.sleep(0.05)

    def waiting(self) -> int:
        """Deliveries that nobody has settled."""
        return int(self.asked("SELECT COUNT(*) FROM deliveries WHERE state = 'received'"))

    def asked(self, sql: str) -> int | str:
        """The one value that the store answers with."""
        with closing(sqlite3.connect(self.world.root / "data" / "state.db", timeout=30)) as db:
            [[value]] = db.execute(sql).fetchall()
        return value if value is not None else 0

    async def _lag(self) -> Lag:
        self.service.process.send_signal(signal.SIGUSR1)
        async with asyncio.timeout(STATUS_SECONDS):
            while (found := lag.read(self.world.root / "loop.json")) is None:
                await asyncio.sleep(0.02)
        return found

    async def _health(self) -> Health:
        assert self.probe.stdin is not None
        assert self.probe.stdout is not None
        self.probe.stdin.write(b"\n")
        async with asyncio.timeout(10):
            return Health(**json.loads(await self.probe.stdout.readline()))

    async def _end(self) -> None:
        await _ended(self.probe)
        with contextlib.suppress(TimeoutError):
            await self.service.stop()
        await self.service.kill()


async def _begun(world: World) -> tuple[Service, asyncio.subprocess.Process]:
    service = await Service.start(world, module="tests.loop.service")
    assert service is not None, (world.root / "service.log").read_text(encoding="utf-8")[-2000:]
    url = httpx.URL(service.url)
    probe = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.loop.probe",
        url.host,
        str(url.port),
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    return service, probe


async def _ended(probe: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        probe.kill()
    await probe.wait()
