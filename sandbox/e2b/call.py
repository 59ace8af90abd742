"""One connection into a sandbox's switchboard: made, proved, held ready, and at last joined with the gateway."""

from __future__ import annotations

import asyncio
import base64
import secrets
import ssl
from contextlib import suppress
from functools import cache

from sandbox.e2b.inside import frames, proofs
from sandbox.e2b.inside.frames import Broken, Wire
from sandbox.runner import web

CONNECT_SECONDS = 15.0
PING_SECONDS = 20.0
SILENCE_SECONDS = 50.0
"""Every ping is answered at once; so long without a sound, and there is nobody any more."""
BLOCK = 1 << 16


class Call:
    """`connect`, `until_wanted`, `serve`; `abort` ends it at any time."""

    def __init__(self, target: web.Target, key: bytes, gateway: tuple[str, int]) -> None:
        self._target = target
        self._key = key
        self._gateway = gateway
        self._wire: Wire | None = None
        self._pings: asyncio.Task[None] | None = None

    @property
    def wire(self) -> Wire:
        assert self._wire is not None
        return self._wire

    async def connect(self, path: str) -> None:
        """OSError, TimeoutError or Broken where it cannot be; also when the other end has not our key."""
        async with asyncio.timeout(CONNECT_SECONDS):
            context = tls() if self._target.tls else None
            reader, writer = await asyncio.open_connection(self._target.host, self._target.port, ssl=context)
            self._wire = Wire(reader, writer, client=True)
            await self._upgrade(reader, writer, path)
            await self._prove()
        self._pings = asyncio.create_task(self._keep_alive())

    async def until_wanted(self) -> None:
        """Until an agent inside has been joined with this connection."""
        while True:
            kind, data = await self._receive()
            if kind == frames.TEXT and data == b"open":
                return
            if kind not in (frames.PING, frames.PONG):
                raise Broken("no call was expected")

    async def serve(self) -> None:
        reader, writer = await asyncio.open_connection(*self._gateway)
        try:
            await self.wire.say("taken")
            answers = asyncio.create_task(self._answers(reader))
            try:
                await self._requests(writer)
            finally:
                answers.cancel()
                await asyncio.gather(answers, return_exceptions=True)
        finally:
            writer.transport.abort()

    def abort(self) -> None:
        if self._pings is not None:
            self._pings.cancel()
        if self._wire is not None:
            self._wire.abort()

    async def _upgrade(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> None:
        key = base64.b64encode(secrets.token_bytes(16)).decode("ascii")
        head = f"GET {path} HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        named, _ = web.renamed(f"{head}Sec-WebSocket-Key: {key}\r\n\r\n".encode(), self._target)
        writer.write(named)
        await writer.drain()
        try:
            answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            raise Broken("the sandbox's proxy hung up") from None
        if " 101 " not in answer.partition("\r\n")[0] or frames.accepted(key) not in answer:
            raise Broken("the sandbox's proxy did not let us through")

    async def _prove(self) -> None:
        """Both ways: that a process of the agent's has put itself in the switchboard's place is noticed, too."""
        theirs, ours = await self.wire.hear(), secrets.token_hex(16)
        nonces = f"{theirs[:64]} {ours}"
        await self.wire.say(f"{ours} {proofs.proof(self._key, proofs.HOST, nonces)}")
        if not proofs.holds(self._key, proofs.INSIDE, nonces, await self.wire.hear()):
            raise Broken("this is not our switchboard")

    async def _receive(self) -> tuple[int, bytes]:
        async with asyncio.timeout(SILENCE_SECONDS):
            return await self.wire.receive()

    async def _requests(self, gateway: asyncio.StreamWriter) -> None:
        """From inside to the gateway, until the inside is through with it."""
        while True:
            kind, data = await self._receive()
            if kind == frames.BINARY:
                gateway.write(data)
                await gateway.drain()
            elif kind == frames.CLOSE:
                return
            elif kind == frames.TEXT and data == b"end":
                gateway.write_eof()

    async def _answers(self, gateway: asyncio.StreamReader) -> None:
        """The inside hangs up then, when it has everything: what is cut off from here may be lost on the way."""
        with suppress(Broken, OSError):
            while data := await gateway.read(BLOCK):
                await self.wire.send(frames.BINARY, data)
            await self.wire.send(frames.CLOSE)

    async def _keep_alive(self) -> None:
        with suppress(Broken):
            while True:
                await asyncio.sleep(PING_SECONDS)
                await self.wire.send(frames.PING)


@cache
def tls() -> ssl.SSLContext:
    """Shared: each of its own would cost a megabyte."""
    return ssl.create_default_context()
