"""The one way to the model's provider: one TLS context, bounded times and connections, no redirects, no retries."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from bot.web.gateway import connection
from bot.web.gateway.connection import AnswerHead, Connection, ConnectionBroken, Landing

CONNECT_SECONDS = 10.0
READ_SECONDS = 600.0
WRITE_SECONDS = 60.0
MAX_CONNECTIONS = 256
MOST_KEPT = 32
KEPT_SECONDS = 30.0


class Unreachable(Exception):
    """Nothing was sent."""


class ProviderAnswer:
    """What the provider says: its head, then `next` until it gives nothing. Broken where it breaks off."""

    def __init__(self, head: AnswerHead, connection: Connection, read_seconds: float) -> None:
        self.status = head.status
        self.headers = head.headers
        self._connection = connection
        self._read_seconds = read_seconds

    async def next(self) -> bytes:
        return await self._connection.next(self._read_seconds)

    async def whole(self, limit: int) -> bytes | None:
        """The whole body, or None when it is too large or breaks off."""
        parts: list[bytes] = []
        size = 0
        try:
            while burst := await self.next():
                size += len(burst)
                if size > limit:
                    return None
                parts.append(burst)
        except ConnectionBroken:
            return None
        return b"".join(parts)


class Upstream:
    """The operator's proxy variables are not heeded: they must not carry the key to another host by accident."""

    def __init__(self, url: str, read_seconds: float = READ_SECONDS) -> None:
        parts = urlsplit(url.rstrip("/"))
        self._tls = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port or (443 if self._tls else 80)
        self._name, self._path = parts.netloc.removesuffix(":"), parts.path
        self._read_seconds = read_seconds
        self._landing = Landing()
        self._room = asyncio.Semaphore(MAX_CONNECTIONS)
        self._kept: list[tuple[float, Connection]] = []
        """With when each came free, the oldest first."""

    @asynccontextmanager
    async def ask(self, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> AsyncIterator[ProviderAnswer]:
        """Unreachable, or Broken once it was sent. Who leaves before the end closes the connection."""
        head = connection.request(self._name, self._path + path, headers, len(body))
        async with self._connected() as line:
            await line.send(head, body, WRITE_SECONDS)
            del body
            yield ProviderAnswer(await line.head(self._read_seconds), line, self._read_seconds)

    async def close(self) -> None:
        for _, line in self._kept:
            line.close()
        self._kept.clear()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Connection]:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._room.acquire()
        except TimeoutError:
            raise Unreachable("every connection is in use") from None
        try:
            line = self._free() or await self._connect()
            try:
                yield line
            finally:
                self._leave(line)
        finally:
            self._room.release()

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, line = await loop.create_connection(
                    lambda: Connection(self._landing),
                    self._host,
                    self._port,
                    ssl=_tls() if self._tls else None,
                    happy_eyeballs_delay=0.25,
                )
        except ssl.SSLCertVerificationError as error:
            raise Unreachable(f"its certificate is refused: {error.verify_message}") from None
        except (OSError, TimeoutError, UnicodeError) as error:  # the last: a name that is none
            raise Unreachable(type(error).__name__) from None
        return line

    def _free(self) -> Connection | None:
        """The one used last: it is the likeliest to live."""
        while self._kept:
            since, line = self._kept.pop()
            if line.is_free and asyncio.get_running_loop().time() - since < KEPT_SECONDS:
                return line
            line.close()
        return None

    def _leave(self, line: Connection) -> None:
        if not line.is_free:
            line.close()
            return
        self._kept.append((asyncio.get_running_loop().time(), line))
        while len(self._kept) > MOST_KEPT:
            self._kept.pop(0)[1].close()


@functools.cache
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
