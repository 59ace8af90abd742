"""Brings a port of a launched command to a port on the host's loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from sandbox.errors import EnvironmentBusy
from sandbox.local import box as boxes
from sandbox.named import Connection, relay

CONNECT_SECONDS = 10.0


class LocalExposures:
    """Of one environment; they last as long as this object is not closed."""

    def __init__(self, out: Path, running: Callable[[], Sequence[str]]) -> None:
        self._out = out
        self._running = running
        self._servers: dict[int, asyncio.Server] = {}

    async def open(self, port: int) -> str:
        server = self._servers.get(port)
        if server is None:

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                try:
                    await relay((reader, writer), await self._reach(port))
                except (OSError, TimeoutError, EnvironmentBusy):
                    writer.transport.abort()

            server = self._servers[port] = await asyncio.start_server(serve, "127.0.0.1", 0)
        return f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        for server in self._servers.values():
            server.close()
        self._servers.clear()

    async def _reach(self, port: int) -> Connection:
        """Each launched command has a network of its own: the first in which somebody listens is the one meant."""
        for name in await asyncio.to_thread(self._running):
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_unix_connection(sock=connect(self._out, boxes.exposure(name)))
                try:
                    writer.write(b"%d\n" % port)
                    await asyncio.wait_for(reader.readexactly(1), CONNECT_SECONDS)
                except BaseException:
                    writer.close()
                    raise
                return reader, writer
        raise EnvironmentBusy(f"nobody listens on port {port} inside")


def connect(folder: Path, name: str) -> socket.socket:
    """To a socket in an agent's folder: never through a link, which might name a socket of the host."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if not stat.S_ISSOCK(os.fstat(handle).st_mode):
            raise FileNotFoundError(name)
        found.setblocking(False)
        found.connect(f"/proc/self/fd/{handle}")
    except OSError:
        found.close()
        raise
    finally:
        os.close(handle)
    return found
