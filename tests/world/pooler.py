"""A connection pooler like PgBouncer on loopback, as far as its clients notice it when they connect."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

ENCRYPTION = (80877103, 80877104)
"""Requests for TLS and for GSSAPI."""
REFUSAL = b"SFATAL\x00C08P01\x00Munsupported startup parameter: options\x00\x00"
OWN_KEY = struct.pack("!cIII", b"K", 12, 4711, 42)


class Pooler:
    """It names another process than the server's. `swallows`: it drops the options of a client, instead of refusing
    them (`ignore_startup_parameters`), and knows which path to search."""

    def __init__(self, port: int, *, swallows: bool, search_path: str) -> None:
        self._server_port = port
        self._swallows = swallows
        self._search_path = search_path
        self._served: set[asyncio.Task[None]] = set()
        self.port = 0

    @classmethod
    @asynccontextmanager
    async def running(cls, port: int, *, swallows: bool, search_path: str = "public") -> AsyncIterator[Pooler]:
        pooler = cls(port, swallows=swallows, search_path=search_path)
        server = await asyncio.start_server(pooler._serve, "127.0.0.1", 0)
        pooler.port = server.sockets[0].getsockname()[1]
        try:
            yield pooler
        finally:
            server.close()
            await asyncio.gather(*pooler._served)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._served.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError), closing(writer):
            given = await self._startup(reader, writer)
            if b"options" in given and not self._swallows:
                writer.write(b"E" + struct.pack("!I", 4 + len(REFUSAL)) + REFUSAL)
                await writer.drain()
                return
            given[b"options"] = f"-c search_path={self._search_path}".encode()
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._server_port)
            with closing(to_server):
                words = b"".join(b"%s\x00%s\x00" % pair for pair in given.items())
                to_server.write(struct.pack("!II", 9 + len(words), 196608) + words + b"\x00")
                await self._relay_until_ready(from_server, writer)
                ways = {asyncio.ensure_future(_pass(*way)) for way in ((reader, to_server), (from_server, writer))}
                _, left = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for one in left:
                    one.cancel()
                await asyncio.wait(ways)

    async def _startup(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> dict[bytes, bytes]:
        while True:
            length, code = struct.unpack("!II", await reader.readexactly(8))
            body = await reader.readexactly(length - 8)
            if code not in ENCRYPTION:
                words = body.rstrip(b"\x00").split(b"\x00")
                return dict(zip(words[::2], words[1::2], strict=True))
            writer.write(b"N")

    async def _relay_until_ready(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kind = b""
        while kind != b"Z":
            head = await reader.readexactly(5)
            kind, length = head[:1], int.from_bytes(head[1:])
            body = await reader.readexactly(length - 4)
            writer.write(OWN_KEY if kind == b"K" else head + body)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
