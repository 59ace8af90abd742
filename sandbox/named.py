"""Carries a TLS connection to one server, if the connection's hellos name that server."""

from __future__ import annotations

import asyncio

from sandbox import hello

BLOCK = 1 << 16

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def relay(near: Connection, far: Connection) -> None:
    """Copy both ways until both have ended; pass on the end of one direction while the other lives."""
    try:
        await asyncio.gather(_copy(near[0], far[1]), _copy(far[0], near[1]))
    finally:
        near[1].close()
        far[1].close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(BLOCK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


HELLO_SECONDS = 10.0
MOST_BYTES = 2 * hello.HELLO_BYTES  # a hello with its records, plus early data before a second one
_HEAD = 5


class NotNamed(Exception):
    """A connection that we do not carry. `name`: the other server that it names, if any."""

    def __init__(self, reason: str, name: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.name = name


async def carry(near: Connection, far: Connection, name: str) -> None:
    """Connect both ends after the client has named the server; before that, no byte reaches the far side. A wrong or
    slow hello raises NotNamed or TimeoutError."""
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            await _pass_hello(near, far, name)
            if await _asks_again(far, near):
                await _pass_hello(near, far, name, second=True)
    except hello.NotAcceptable as wrong:
        raise NotNamed(f"the connection {wrong}") from None
    await relay(near, far)


async def _pass_hello(near: Connection, far: Connection, name: str, *, second: bool = False) -> None:
    """Check and pass on a hello. Early data and a record for old middleboxes may precede a second one."""
    raw = message = b""
    while not (message and hello.is_whole(message)):
        kind, record = await _record(near[0])
        if kind == hello.HANDSHAKE:
            message += record[_HEAD:]
        elif message or not second:
            raise hello.NotAcceptable("does not begin with a hello of TLS")
        raw += record
        if len(raw) > MOST_BYTES:
            raise hello.NotAcceptable("begins with too many records")
    found = hello.server_name(message)
    if found != name:
        raise NotNamed(f"the connection was to be to {name} and names another server in TLS", found)
    far[1].write(raw)
    await far[1].drain()


async def _asks_again(far: Connection, near: Connection) -> bool:
    """Pass the server's answer on to the client; return whether it asks for a second hello."""
    message = b""
    while (again := hello.asks_again(message)) is None:
        head = await far[0].read(1)
        near[1].write(head)
        if head != bytes((hello.HANDSHAKE,)):
            return False
        head += (rest := await far[0].readexactly(_HEAD - 1))
        record = await far[0].readexactly(hello.of_record(head)[1])
        near[1].write(rest + record)
        message += record
    await near[1].drain()
    return again


async def _record(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readexactly(1)
    if not hello.is_kind(head[0]):  # another protocol, which may send no more before an answer
        raise hello.NotAcceptable("is not TLS")
    head += await reader.readexactly(_HEAD - 1)
    kind, length = hello.of_record(head)
    return kind, head + await reader.readexactly(length)
