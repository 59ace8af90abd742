"""Which sandboxes have a tunnel to the gateway: one each while we use it, where sandboxes cannot reach us."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sandbox.e2b.line import SandboxLine
from sandbox.e2b.settings import E2BSettings
from sandbox.e2b.tunnel import Tunnel


class Tunnels:
    """By the environment's key. For those that reach the gateway by themselves, all of this does nothing."""

    def __init__(self, settings: E2BSettings, line: Callable[[str, object], SandboxLine]) -> None:
        self._settings = settings
        self._line = line
        self._open: dict[str, Tunnel] = {}

    async def open(self, key: str, line: SandboxLine, egress: Sequence[str] | None, *, anew: bool = False) -> None:
        """What leads there already stays, unless it is known to lead nowhere."""
        if self._settings.gateway_address is None or not self._settings.by_tunnel(egress):
            return
        found = self._open.get(key)
        if found is not None and found.is_open and found.sandbox_id == line.sandbox_id and not anew:
            return
        await self.close(key)
        # A line of its own: the environment's ends with the step of the turn that uses it.
        tunnel = self._open[key] = Tunnel(self._line(line.sandbox_id, await line.sandbox()), self._settings)
        tunnel.start()

    async def close(self, key: str) -> None:
        if (found := self._open.pop(key, None)) is not None:
            await found.close()

    async def close_all(self) -> None:
        for key in list(self._open):
            await self.close(key)
