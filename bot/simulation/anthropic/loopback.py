"""Runs an ASGI application with uvicorn inside the current loop, on loopback, without touching signals.

uvicorn's own main loop looks every tenth of a second whether it should end. Here nobody has to look: the context
that started the server ends it, so a server costs milliseconds.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

GRACE_SECONDS = 1.0


@asynccontextmanager
async def serving(app: Any, port: int = 0, *, closing: Callable[[], None] = lambda: None) -> AsyncIterator[int]:
    """Yield the port. At the end `closing` is called first, so that what is held back can let go."""
    listener = socket.socket(
        socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )  # named: or asyncio leaves Nagle on
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    server = await _start(app, listener)
    try:
        yield listener.getsockname()[1]
    finally:
        closing()
        await _stop(server)


async def _start(app: Any, listener: socket.socket) -> uvicorn.Server:
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", server_header=False)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup([listener])
    await server.on_tick(0)  # the Date header
    return server


async def _stop(server: uvicorn.Server) -> None:
    for listening in server.servers:
        listening.close()
    for connection in list(server.server_state.connections):
        connection.shutdown()
    tasks = set(server.server_state.tasks)
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=GRACE_SECONDS)
        for task in late:
            task.cancel()
