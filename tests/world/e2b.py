"""The stand-in for E2B, with providers on the real SDK."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bot.errors import SettingsError
from bot.web.server import tcp_socket
from sandbox.agents import claude_binary
from sandbox.e2b.provider import E2BProvider
from sandbox.e2b.settings import E2BSettings
from sandbox.primitives import Marks, Witness
from tests.e2b_stand_in import E2BStandIn, Limits
from tests.world import World

if TYPE_CHECKING:
    from e2b import AsyncSandbox

AGENT = "/run/agent"
CLAUDE = "/run/claude"


@dataclass
class E2BWorld:
    e2b: E2BStandIn
    settings: E2BSettings

    def provider(
        self, witness: Witness | None = None, /, *, marks: Marks | None = None, **changes: object
    ) -> E2BProvider:
        """Make a provider on the cloud's clock, so that a test can set both ahead."""
        settings = replace(self.settings, **changes)  # type: ignore[arg-type]
        return E2BProvider(settings, clock=self.e2b.clock.now, witness=witness, marks=marks)

    async def sdk(self, sandbox_id: str) -> AsyncSandbox:
        """Connect E2B's own client, for acts that the provider does not see."""
        from e2b import AsyncSandbox

        found = self.settings
        return await AsyncSandbox.connect(
            sandbox_id, api_key=found.api_key, api_url=found.api_url, sandbox_url=found.sandbox_url
        )


@asynccontextmanager
async def e2b_world(root: Path, agent: Path, *, limits: Limits | None = None) -> AsyncIterator[E2BWorld]:
    async with E2BStandIn.running(root / "e2b", limits=limits, extra_binds=[(agent, AGENT)]) as e2b:
        settings = E2BSettings(
            api_key=e2b.api_key,
            gateway_url="http://127.0.0.1:9",
            instance="test",
            api_url=e2b.api_url,
            sandbox_url=e2b.sandbox_url,
            agent=AGENT,
            floor=None,
            creations_per_second=1000.0,
        )
        yield E2BWorld(e2b, settings)


@asynccontextmanager
async def e2b_maker(root: Path, agent: Path) -> AsyncIterator[Callable[[], E2BProvider]]:
    """Make providers for suites over every kind of environment."""
    async with e2b_world(root, agent) as world:
        yield world.provider


def _quiet_port() -> int:
    """Find a free port below those that systems give to connections, so that only we take it."""
    for port in random.sample(range(15000, 32000), 100):
        with suppress(SettingsError), tcp_socket("127.0.0.1", port):
            return port
    raise AssertionError("there is no free port")


@asynccontextmanager
async def e2b_spine(
    root: Path, limits: Limits | None = None, agent: Path | None = None, /, **changes: str
) -> AsyncIterator[tuple[World, E2BStandIn]]:
    """Run the whole world with sessions in sandboxes, and the real Claude CLI in them (or another agent)."""
    binds = [(agent or claude_binary.find(), CLAUDE)]
    port = _quiet_port()
    async with E2BStandIn.running(root / "e2b", limits=limits, extra_binds=binds) as e2b:
        environment = {
            **e2b.environment(),
            "FORGEHAND_SANDBOX": "e2b",
            "FORGEHAND_PORT": str(port),
            "FORGEHAND_PUBLIC_URL": f"http://127.0.0.1:{port}",
            "FORGEHAND_E2B_AGENT": CLAUDE,
            "FORGEHAND_E2B_CREATIONS": "1000",
            **changes,
        }
        async with World.running(root, **environment) as world:
            yield world, e2b
