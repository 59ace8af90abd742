"""Several replicas of the service as processes, each with its own data directory and its own wire to one PostgreSQL,
behind a balancer that asks who is ready."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bot.settings import Secret
from bot.simulation.balancer import Balancer
from bot.store import replicas
from bot.store.base import Store
from bot.store.replicas import Replica
from tests.crash.nursery import ForkedProcess, forked
from tests.world import World
from tests.world.postgres import PostgresServer
from tests.world.wire_cutter import WireCutter

ROOT = Path(__file__).parents[2]
START_SECONDS = 60.0
PATIENCE_SECONDS = 6.0
"""The least that the setting takes."""
LISTENS = re.compile(r"listens on (http://\S+);")


@dataclass(eq=False)
class ReplicaProcess:
    folder: Path
    environment: dict[str, str]
    wire: WireCutter
    code: Path = ROOT
    """Where its version of the product lies."""
    skew_seconds: float = 0.0
    """How wrong its clock is."""
    url: str = ""
    is_forked: bool = True
    """Comes from the nursery, and not from the command line: starting takes a second less of computing."""
    process: asyncio.subprocess.Process | ForkedProcess | None = None

    @property
    def home(self) -> str:
        return (self.folder / "home").read_text()

    async def start(self) -> None:
        before = len(self.log())
        with self._log.open("ab") as log:
            command = ("tests.world.skewed", str(self.skew_seconds)) if self.skew_seconds else ("bot", "serve")
            if self.is_forked and self.code == ROOT and not self.skew_seconds:
                self.process = await forked(command, self.environment, log.fileno())
            else:
                self.process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", *command), cwd=self.code, env=self.environment, stderr=log
                )
        async with asyncio.timeout(START_SECONDS):
            while not (found := LISTENS.search(self.log()[before:])):
                assert self.lives, f"{self.folder.name} did not start: {self.log()[-2000:]}"
                await asyncio.sleep(0.05)
        self.url = found[1]

    @property
    def _log(self) -> Path:
        return self.folder.parent / f"{self.folder.name}.log"

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def end(self, number: signal.Signals = signal.SIGKILL) -> int:
        """End it, and return its exit code."""
        self.send(number)
        return await self.ended()

    async def ended(self, timeout: float = 40.0) -> int:
        assert self.process is not None
        async with asyncio.timeout(timeout):
            return await self.process.wait()

    @property
    def lives(self) -> bool:
        return self.process is not None and self.process.returncode is None


@dataclass
class ReplicaSet:
    world: World
    store: Store
    """A look into the shared database, past the wires."""
    balancer: Balancer
    all: list[ReplicaProcess] = field(default_factory=list)

    @classmethod
    @asynccontextmanager
    async def running(
        cls, world: World, postgres: PostgresServer, count: int = 3, *, is_forked: bool = True, **settings: str
    ) -> AsyncIterator[ReplicaSet]:
        """Start them one after the other, so that the first one leads."""
        address = postgres.fresh().reveal()
        async with AsyncExitStack() as stack:
            found = []
            for n in range(count):
                wire = await stack.enter_async_context(WireCutter.running(postgres.port))
                folder = world.root / f"replica{n}"
                folder.mkdir(mode=0o700)
                own = {
                    "FORGEHAND_DATA_DIR": str(folder),
                    "FORGEHAND_DATABASE_URL": address.replace(str(postgres.port), str(wire.port)),
                    "FORGEHAND_REPLICA_SECONDS": f"{PATIENCE_SECONDS:g}",
                    "PYTHONUNBUFFERED": "1",
                }
                environment = {**world.environment, **own, **settings}
                found.append(ReplicaProcess(folder, environment, wire, is_forked=is_forked))
            try:
                for one in found:
                    await one.start()
                store = await Store.open_reader(Secret(address))
                stack.push_async_callback(store.close)
                balancer = await stack.enter_async_context(
                    Balancer(lambda: [one.url for one in found if one.lives and one.url]).running()
                )
                await balancer.finds(count)
                world.app.webhook_url = f"{balancer.url}/webhook"
                yield cls(world, store, balancer, found)
            finally:
                for one in found:
                    if one.lives:
                        one.send(signal.SIGCONT)
                        await one.end()
                        await _clear(one)

    async def rows(self) -> list[Replica]:
        return await replicas.living(self.store)

    async def leader(self) -> ReplicaProcess:
        async with asyncio.timeout(60):
            while not (found := [one for one in await self.rows() if one.leads]):
                await asyncio.sleep(0.05)
        return self._process_of(found[0])

    async def left(self, count: int) -> None:
        """Wait until so many are known to live."""
        async with asyncio.timeout(60):
            while len(await self.rows()) != count:
                await asyncio.sleep(0.05)

    async def apart(self) -> ReplicaProcess:
        """Bring it about that another than the leader runs the turn; return the one that runs it."""
        while (runner := await self.runner()) is await self.leader():
            await runner.end(signal.SIGTERM)
            await runner.start()
        return runner

    def _process_of(self, row: Replica) -> ReplicaProcess:
        return next(one for one in self.all if row.home.startswith(one.home))

    async def runner(self) -> ReplicaProcess:
        """Find the replica that runs a turn: the engine's own table says it."""
        sql = "SELECT executor_id FROM dbos.workflow_status WHERE status = 'PENDING'"
        async with asyncio.timeout(60):
            while True:
                owners = {row["executor_id"] for row in await self.store.many(sql)}
                for one in await self.rows():
                    if one.id in owners:
                        return self._process_of(one)
                await asyncio.sleep(0.05)


async def _clear(one: ReplicaProcess) -> None:
    """Remove the boxes that a killed one left."""
    from sandbox.agents import claude_binary
    from sandbox.local.folders import EnvironmentsFolder
    from sandbox.local.provider import LocalProvider

    folder = one.folder / "environments"
    if EnvironmentsFolder(folder).environment_ids():
        provider = LocalProvider(folder, claude_binary.find())
        for left in await provider.find({}):
            await left.terminate()
        await provider.close()
