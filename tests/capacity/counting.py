"""Relays on loopback that count what passes: bytes, and for PostgreSQL also statements."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

PARSE, BIND, EXECUTE, SIMPLE = b"P", b"B", b"E", b"Q"
WRITER = b"pg_advisory_xact_lock"
"""Each writing transaction takes this lock."""


class Counting:
    """Passes everything to a port of loopback, and counts the bytes there and back."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.there = 0
        self.back = 0

    @classmethod
    @asynccontextmanager
    async def running(cls, port: int) -> AsyncIterator[Self]:
        relay = cls(port)
        server = await asyncio.start_server(relay._accept, "127.0.0.1", 0)
        relay.port = server.sockets[0].getsockname()[1]
        try:
            yield relay
        finally:
            server.close()
            for task in relay._tasks:
                task.cancel()
            await asyncio.gather(*relay._tasks, return_exceptions=True)
            await server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(OSError):
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
            meter = self.meter()
            ways = self._there(reader, to_server, meter), self._back(from_server, writer)
            try:
                await asyncio.wait(map(asyncio.ensure_future, ways), return_when=asyncio.FIRST_COMPLETED)
            finally:
                to_server.transport.abort()
                writer.transport.abort()

    def meter(self) -> Meter:
        """Make what looks at the bytes of one connection on their way there."""
        return Meter()

    async def _there(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, meter: Meter) -> None:
        while data := await reader.read(65536):
            self.there += len(data)
            meter.saw(data)
            writer.write(data)
            await writer.drain()

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.back += len(data)
            writer.write(data)
            await writer.drain()


class Meter:
    def saw(self, data: bytes) -> None:
        """Look at bytes that a client sends."""


class PostgresCounting(Counting):
    """Counts the statements that clients execute, and the writing transactions among them."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.statements = 0
        self.writes = 0

    def meter(self) -> Meter:
        return _Statements(self)


class _Statements(Meter):
    """Divides PostgreSQL's protocol into messages: a letter, a length that counts itself, a body.

    The first messages of a connection have no letter. A prepared statement is executed by its name."""

    def __init__(self, counts: PostgresCounting) -> None:
        self._counts = counts
        self._rest = b""
        self._begun = False
        self._prepared: dict[bytes, bytes] = {}
        self._bound = b""

    def saw(self, data: bytes) -> None:
        self._rest += data
        while (head := 1 if self._begun else 0) + 4 <= len(self._rest):
            length = head + int.from_bytes(self._rest[head : head + 4])
            if len(self._rest) < length:
                return
            message, self._rest = self._rest[:length], self._rest[length:]
            if self._begun:
                self._count(message[:1], message[5:])
            else:
                self._begun = int.from_bytes(message[4:8]) >> 16 == 3  # the protocol's version, not a wish for TLS

    def _count(self, kind: bytes, body: bytes) -> None:
        if kind == PARSE:
            name, text = body.split(b"\0", 2)[:2]
            self._prepared[name] = text
        elif kind == BIND:
            self._bound = self._prepared.get(body.split(b"\0", 2)[1], b"")
        elif kind in (EXECUTE, SIMPLE):
            self._counts.statements += 1
            self._counts.writes += WRITER in (self._bound if kind == EXECUTE else body)
