"""Brings an HTTP port of a sandbox to a port on the host's loopback; the sandbox itself is closed to the public."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sandbox.e2b.line import SandboxLine
from sandbox.e2b.settings import E2BSettings
from sandbox.runner import web

if TYPE_CHECKING:
    from e2b import AsyncSandbox


class CloudExposures:
    """Addresses on the host for ports inside one environment, until `close`."""

    def __init__(self, line: SandboxLine, settings: E2BSettings) -> None:
        self._line = line
        self._settings = settings
        self._servers: dict[int, asyncio.Server] = {}

    async def open(self, port: int) -> str:
        server = self._servers.get(port)
        if server is None:
            sandbox = await self._line.sandbox()
            server = self._servers[port] = await web.listen(target(sandbox, port, self._settings), hold=0.0)
        return f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        for server in self._servers.values():
            server.close()
        self._servers.clear()


def target(sandbox: AsyncSandbox, port: int, settings: E2BSettings) -> web.Target:
    """Return the address of a sandbox's port, and the headers that let a request through."""
    headers = {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": str(port)}
    if sandbox.traffic_access_token:
        headers["E2b-Traffic-Access-Token"] = sandbox.traffic_access_token
    # Each port has a domain; with a fixed address the headers name the port.
    return web.Target.of(settings.sandbox_url or f"https://{sandbox.get_host(port)}", headers)
