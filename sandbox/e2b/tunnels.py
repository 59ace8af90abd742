"""Keeps one tunnel to the gateway for each sandbox in use that cannot reach us."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sandbox.e2b.line import SandboxLine
from sandbox.e2b.settings import E2BSettings
from sandbox.e2b.tunnel import Tunnel


class Tunnels:
    """Tunnels by the environment's key. Environments that can reach the gateway get none."""

    def __init__(self, settings: E2BSettings, line: Callable[[str, object], SandboxLine]) -> None:
        self._settings = settings
        self._line = line
        self._open: dict[str, Tunnel] = {}

    async def open(self, key: str, line: SandboxLine, egress: Sequence[str] | None, *, anew: bool = False) -> None:
        """Open a tunnel, or keep the present one. `anew`: the present one is known to be dead."""
        if self._settings.gateway_address is None or not self._settings.by_tunnel(egress):
            return
        found = self._open.get(key)
        if found is not None and found.is_open and found.sandbox_id == line.sandbox_id and not anew:
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
