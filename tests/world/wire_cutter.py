"""A TCP relay on loopback between a client and a server that can cut, stall or swallow what passes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class WireCutter:
    """Relays to a port of loopback. `lose_answer_to` cuts a connection after the server has answered those bytes, and
    before the client hears of it; `stalled` keeps everything back; `refusing` cuts whoever comes."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: set[asyncio.StreamWriter] = set()
        self.lose_answer_to: bytes | None = None
        self.lost = 0
        self.refusing = False
        self.passing = asyncio.Event()
        self.passing.set()
        self.port = 0
        self.bytes_asked = 0
        self.bytes_answered = 0
        self.statements = 0
        """Statements of PostgreSQL's protocol that were carried out."""

    @classmethod
    @asynccontextmanager
    async def running(cls, port: int) -> AsyncIterator[WireCutter]:
        cutter = cls(port)
        server = await asyncio.start_server(cutter._relay, "127.0.0.1", 0)
        cutter.port = server.sockets[0].getsockname()[1]
        try:
            yield cutter
        finally:
            cutter.passing.set()
            cutter.refusing = True
            cutter.cut()
            server.close()
            await server.wait_closed()

    def cut(self) -> None:
        """End every connection there is."""
        for writer in self._open:
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, to_server}
        self._open |= ends
        losing = asyncio.Event()
        there = asyncio.ensure_future(self._pass(reader, to_server, losing, asks=True))
        back = asyncio.ensure_future(self._pass(from_server, writer, losing, asks=False))
        await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        self._open -= ends
        for one in ends:
            one.transport.abort()
        there.cancel()
        back.cancel()
        await asyncio.gather(there, back, return_exceptions=True)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, losing: asyncio.Event, *, asks: bool
    ) -> None:
        with contextlib.suppress(ConnectionError):
            counter = StatementCounter()
            while data := await reader.read(65536):
                await self.passing.wait()
                if asks:
                    self.bytes_asked += len(data)
                    self.statements += counter.feed(data)
                else:
                    self.bytes_answered += len(data)
                if asks and self.lose_answer_to is not None and self.lose_answer_to in data:
                    losing.set()
                elif not asks and losing.is_set():
                    self.lose_answer_to = None
                    self.lost += 1
                    return
                writer.write(data)
                await writer.drain()


class StatementCounter:
    """Counts the messages with which a client has a statement carried out: Query and Execute."""

    def __init__(self) -> None:
        self._held = b""
        self._has_begun = False

    def feed(self, data: bytes) -> int:
        self._held += data
        found = 0
        while (length := self._length()) is not None and len(self._held) >= length:
            found += self._has_begun and self._held[:1] in (b"Q", b"E")
            self._has_begun = self._has_begun or self._held[4:8] == b"\x00\x03\x00\x00"  # the first message has no type
            self._held = self._held[length:]
        return found

    def _length(self) -> int | None:
        at = 1 if self._has_begun else 0
        return at + int.from_bytes(self._held[at : at + 4]) if len(self._held) >= 8 - 3 * at else None
