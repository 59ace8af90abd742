"""Implements WebSocket as far as the inner end of a tunnel needs it; standard library only, Python 3.9+.

We use WebSocket because proxies let it through in both directions. Binary frames carry bytes, text frames carry our
words about them.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MOST_BYTES = 1 << 17
MORE, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
MASKED = 0x80
LAST = 0x80


class Broken(Exception):
    """The other end has gone or breaks the protocol."""


def accepted(key: str) -> str:
    """Compute a server's answer to a client's key."""
    return base64.b64encode(hashlib.sha1(key.encode("latin-1") + GUID).digest()).decode("ascii")  # noqa: S324 - RFC 6455


def masked(data: bytes, mask: bytes) -> bytes:
    whole = (mask * (len(data) // 4 + 1))[: len(data)]
    return (int.from_bytes(data, "big") ^ int.from_bytes(whole, "big")).to_bytes(len(data), "big")


def frame(kind: int, data: bytes) -> bytes:
    """Build one whole frame, unmasked, because only clients mask."""
    size = len(data)
    if size < 126:
        return bytes((LAST | kind, size)) + data
    if size < 1 << 16:
        return bytes((LAST | kind, 126)) + size.to_bytes(2, "big") + data
    return bytes((LAST | kind, 127)) + size.to_bytes(8, "big") + data


class Wire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._sending = asyncio.Lock()
        self._last = BINARY

    async def send(self, kind: int, data: bytes = b"") -> None:
        """Send a frame and wait until there is room for more, so that a slow reader slows the writer."""
        async with self._sending:
            self._writer.write(frame(kind, data))
            try:
                await self._writer.drain()
            except OSError as error:
                raise Broken("the connection was lost") from error

    async def say(self, word: str) -> None:
        await self.send(TEXT, word.encode())

    async def receive(self) -> tuple[int, bytes]:
        """Return the next frame's kind and bytes. A proxy may have divided a binary frame, which does no harm."""
        try:
            first, second = await self._reader.readexactly(2)
            size = second & 127
            if size > 125:
                size = int.from_bytes(await self._reader.readexactly(2 if size == 126 else 8), "big")
            if size > MOST_BYTES:
                raise Broken("a frame is too large")
            mask = await self._reader.readexactly(4) if second & MASKED else b""
            data = await self._reader.readexactly(size)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise Broken("the connection was lost") from error
        return self._kind(first), masked(data, mask) if mask else data

    async def hear(self) -> str:
        kind, data = await self.receive()
        if kind != TEXT:
            raise Broken("a word was due")
        return data.decode("utf-8", "replace")

    def abort(self) -> None:
        self._writer.transport.abort()

    def _kind(self, first: int) -> int:
        kind = first & 15
        if kind == MORE:
            kind = self._last
        if kind == TEXT and not (first & LAST and first & 15):
            raise Broken("a word was divided")
        if kind in (TEXT, BINARY):
            self._last = kind
        return kind
