"""A provider that answers given bytes, with or without TLS, and an `Upstream` to it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from bot.web.gateway.exchange import ProviderAnswer, Upstream

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
Say = Callable[[asyncio.StreamWriter], Awaitable[None]]


def piece(text: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(text), text)


class Provider:
    """Answers each request with given bytes; `connections` counts the opened ones."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self.connections = 0
        self.asked: list[bytes] = []
        self.left = asyncio.Event()
        self.tasks: list[asyncio.Task[None] | None] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.tasks.append(asyncio.current_task())
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                self.asked.append(head + await reader.readexactly(size))
                await self._say(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.left.set()
        finally:
            writer.close()


@asynccontextmanager
async def provided(
    say: Say, seconds: float = 5.0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Provider, Upstream]]:
    provider = Provider(say)
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0, ssl=tls)
    where = f"127.0.0.1:{server.sockets[0].getsockname()[1]}/base"
    upstream = Upstream(f"{'https' if tls else 'http'}://{where}", seconds)
    try:
        yield provider, upstream
    finally:
        await upstream.close()
        server.close()
        async with asyncio.timeout(5):
            await asyncio.gather(*filter(None, provider.tasks))
        await server.wait_closed()


def saying(*parts: bytes) -> Say:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(parts))
        await writer.drain()

    return say


async def everything(answer: ProviderAnswer) -> list[bytes]:
    found = []
    while burst := await answer.next():
        found.append(burst)
    return found
