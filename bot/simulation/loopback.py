"""Runs ASGI applications on loopback in the current event loop, and can cut single connections."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState


def loopback_socket(port: int) -> socket.socket:
    # with the protocol named, asyncio switches Nagle off: without it each answer costs 40 ms on loopback
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    return sock


class LoopbackServer:
    """uvicorn's protocol without its process: no signal handlers, no lifespan, an immediate stop."""

    def __init__(self) -> None:
        self._connections: dict[tuple[str, int], asyncio.Transport] = {}
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    async def start(self, app: ASGIApp, port: int, *, upgraded: Callable[..., asyncio.Protocol] | None = None) -> int:
        """Return the port. `upgraded` takes over connections that ask for a WebSocket."""
        config = uvicorn.Config(
            app,
            ws=upgraded or "none",  # type: ignore[arg-type]  # uvicorn asks for a class, and only calls it
            interface="asgi3",  # it would guess wrongly for a bound method
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=60,
        )
        config.load()
        sock = loopback_socket(port)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(config, self._state, self._connections), sock=sock, backlog=1024
        )
        return int(sock.getsockname()[1])

    def cut(self, scope: Scope, hard: bool) -> None:
        transport = self._connections.get(tuple(scope["client"]))
        if transport is not None:
            abort(transport, hard=hard)

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for transport in list(self._connections.values()):
            transport.abort()
        if tasks := set(self._state.tasks):
            # most end soon by themselves; a cancelled one may leave its git process behind
            _, late = await asyncio.wait(tasks, timeout=1.0)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._server.wait_closed()


class Connection(HttpToolsProtocol):
    """One client's connection, which its address identifies."""

    def __init__(
        self, config: uvicorn.Config, state: ServerState, register: dict[tuple[str, int], asyncio.Transport]
    ) -> None:
        super().__init__(config, state, app_state={})
        self._register = register
        self._address: tuple[str, int] = ("", 0)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        host, port = transport.get_extra_info("peername")[:2]
        self._address = (host, port)
        self._register[self._address] = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._register.pop(self._address, None)
        super().connection_lost(exc)


def abort(transport: asyncio.Transport, *, hard: bool) -> None:
    """Close without an answer; hard: with a reset instead of an end of stream."""
    sock = transport.get_extra_info("socket")
    if hard and sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()


@asynccontextmanager
async def serving(app: ASGIApp, port: int = 0, *, closing: Callable[[], None] = lambda: None) -> AsyncIterator[int]:
    """Yield the port. At the end call `closing` first, so that held answers can go on."""
    server = LoopbackServer()
    try:
        yield await server.start(app, port)
    finally:
        closing()
        await server.stop()
