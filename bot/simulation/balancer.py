"""A small load balancer on loopback: sends each connection to the next service that says it is ready."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import httpx

ASK_SECONDS = 0.25
UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Balancer:
    """Asks each service for `/readyz`, four times a second by default, and answers 503 if none is ready."""

    def __init__(self, services: Callable[[], Sequence[str]]) -> None:
        """`services` returns the addresses of those that run."""
        self._services = services
        self._ready: list[str] = []
        self._asked = asyncio.Event()
        self._turn = itertools.count()
        self._open: set[asyncio.StreamWriter] = set()
        self.url = ""
        self.every_seconds = ASK_SECONDS

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Balancer]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = "http://{}:{}".format(*server.sockets[0].getsockname())
        asking = asyncio.create_task(self._ask())
        try:
            yield self
        finally:
            asking.cancel()
            for one in self._open:
                one.transport.abort()
            server.close()
            await server.wait_closed()
            await asyncio.gather(asking, return_exceptions=True)

    async def finds(self, count: int, timeout: float = 60.0) -> None:
        """Wait until so many are ready."""
        async with asyncio.timeout(timeout):
            while len(self._ready) < count:
                self._asked.clear()
                await self._asked.wait()

    async def _ask(self) -> None:
        async with httpx.AsyncClient(timeout=1.0) as client:
            while True:
                urls = self._services()
                answers = await asyncio.gather(*(_is_ready(client, url) for url in urls))
                self._ready = [url for url, is_ready in zip(urls, answers, strict=True) if is_ready]
                self._asked.set()
                await asyncio.sleep(self.every_seconds)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            ends = await self._connected()
            if ends is None:
                writer.write(UNAVAILABLE)
                await writer.drain()
                writer.close()
                return
            self._open.add(ends[1])
            await asyncio.gather(_pump(reader, ends[1]), _pump(ends[0], writer))
            self._open.discard(ends[1])
        except OSError:
            writer.transport.abort()
        finally:
            self._open.discard(writer)

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for _ in range(len(self._ready)):
            url = httpx.URL(self._ready[next(self._turn) % len(self._ready)])
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(url.host, url.port)
        return None


async def _is_ready(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(f"{url}/readyz")).status_code == 200
    except httpx.HTTPError:
        return False


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
