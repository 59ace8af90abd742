"""The stand-in as a whole: two servers on loopback that answer as E2B's API and its sandboxes do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from starlette.applications import Starlette

from bot.simulation.loopback import LoopbackServer
from tests.e2b_stand_in.api import Api
from tests.e2b_stand_in.clock import Clock
from tests.e2b_stand_in.edge import Edge, named
from tests.e2b_stand_in.faults import Call, Faults, FaultyApp, Means
from tests.e2b_stand_in.machine import Bind
from tests.e2b_stand_in.registry import Limits, Refusal, Registry
from tests.e2b_stand_in.sandbox import Sandbox
from tests.e2b_stand_in.upgrade import Upgrades

API_KEY = "e2b_0123456789abcdef0123456789abcdef01234567"


class E2BStandIn:
    """`async with E2BStandIn.running(folder) as e2b`. It holds state and never expectations."""

    def __init__(self, root: Path, *, limits: Limits | None = None, binds: Sequence[Bind] = ()) -> None:
        self.clock = Clock()
        self.faults = Faults()
        self.calls: list[Call] = []
        """Every request to either server, oldest first."""
        self.api_key = API_KEY
        self.api_url = ""
        self.sandbox_url = ""
        self.registry = Registry(root, self.clock, limits or Limits(), binds)
        self.upgrades = Upgrades(self.registry, named)
        """The connections to ports inside that are no longer HTTP."""
        self._killing: set[asyncio.Task[None]] = set()
        self._servers = (LoopbackServer(), LoopbackServer())
        api, edge = self._servers
        control = Api(self.registry, API_KEY)
        self.templates = control.templates
        self._apps = (
            FaultyApp(Starlette(routes=control.routes()), self.faults, self.calls, self._means(api)),
            FaultyApp(Edge(self.registry, self.clock, edge.cut), self.faults, self.calls, self._means(edge)),
        )

    @classmethod
    @asynccontextmanager
    async def running(
        cls, root: Path, *, limits: Limits | None = None, extra_binds: Sequence[tuple[Path, str]] = ()
    ) -> AsyncIterator[E2BStandIn]:
        """Serves until the block ends, then everything is killed; a mistake of the stand-in itself is raised there.

        `extra_binds`: files or folders of the host that every sandbox sees, read-only, at a path of its own.
        """
        e2b = cls(root, limits=limits, binds=[Bind(source, target) for source, target in extra_binds])
        try:
            await e2b.start()
            yield e2b
        finally:
            await e2b.stop()
        for error in (error for app in e2b._apps for error in app.errors):
            raise error

    async def start(self) -> None:
        (api, edge), (api_app, edge_app) = self._servers, self._apps
        ports = (await api.start(api_app, 0), await edge.start(edge_app, 0, upgraded=self.upgrades.protocol))
        self.api_url, self.sandbox_url = (f"http://127.0.0.1:{port}" for port in ports)

    async def stop(self) -> None:
        self.faults.clear()
        await asyncio.gather(*self._killing)
        await self.registry.close()
        for server in self._servers:
            await server.stop()
        await self.clock.close()

    def environment(self) -> dict[str, str]:
        """What points the real SDK here."""
        return {
            "E2B_API_KEY": self.api_key,
            "E2B_API_URL": self.api_url,
            "E2B_SANDBOX_URL": self.sandbox_url,
            "E2B_DOMAIN": "localhost:" + self.sandbox_url.rpartition(":")[2],
        }

    # --- the read model

    @property
    def sandboxes(self) -> list[Sandbox]:
        """All that ever were, oldest first."""
        return list(self.registry.all.values())

    @property
    def most_at_once(self) -> int:
        """The most sandboxes that were there at one time."""
        begun = [one.created_at for one in self.sandboxes]
        return max(sum(one.created_at <= at < (one.ended_at or at + 1) for one in self.sandboxes) for at in begun)

    @property
    def live(self) -> list[Sandbox]:
        return [each for each in self.sandboxes if each.state != "killed"]

    def sandbox(self, sandbox_id: str) -> Sandbox:
        return self.registry.all[sandbox_id]

    @property
    def limits(self) -> Limits:
        return self.registry.limits

    # --- the world's hand

    async def kill(self, sandbox_id: str) -> None:
        """As if the host under it had died."""
        with suppress(Refusal):
            await self.registry.kill(sandbox_id)

    def _means(self, server: LoopbackServer) -> Means:
        return Means(cut=server.cut, kill=self._kill_from_within)

    async def _kill_from_within(self, sandbox_id: str) -> None:
        """Asked for by a stream that the killing itself breaks off."""
        killing = asyncio.ensure_future(self.kill(sandbox_id))
        self._killing.add(killing)
        killing.add_done_callback(self._killing.discard)
        await asyncio.shield(killing)
