"""Joins connections of the agent with connections that the host has opened into this machine; runs as root.

It serves hosts that cannot be reached from here. The agent's side is a Unix socket for anybody; the host's side is a
port. It does not inspect the traffic, because the gateway decides on each request.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections import deque
from pathlib import Path

from . import frames, places, proofs
from .frames import Broken, Wire

HANDSHAKE_SECONDS = 10.0
HEAD_BYTES = 8 << 10
STRANGERS = 32  # connections to the port that have not proved who they are
AGENTS = 128
HOLD_SECONDS = 60.0  # how long the agent waits for a host that is away
ANSWER_SECONDS = 5.0
SILENCE_SECONDS = 75.0  # the host pings every twenty seconds; a longer silence means that it has gone
BLOCK = 1 << 16
REFUSAL = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Channel:
    """One connection of the host, idle until it gets an agent."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.taken = asyncio.Event()
        self.ended = False
        self.agent: asyncio.StreamWriter | None = None

    async def listen(self) -> None:
        """Handle what the host sends, until it ends the connection."""
        while True:
            kind, data = await asyncio.wait_for(self.wire.receive(), SILENCE_SECONDS)
            if kind == frames.PING:
                await self.wire.send(frames.PONG, data)
            elif kind == frames.CLOSE:
                return
            elif kind == frames.TEXT and data == b"taken":
                self.taken.set()
            elif kind == frames.TEXT and data == b"end" and self.agent is not None and self.agent.can_write_eof():
                self.agent.write_eof()
            elif kind == frames.BINARY and self.agent is not None:
                self.agent.write(data)
                await self.agent.drain()

    def end(self) -> None:
        self.ended = True
        self.taken.set()
        self.wire.abort()
        if self.agent is not None:
            self.agent.close()


class Switchboard:
    def __init__(self) -> None:
        self._idle: deque[Channel] = deque()
        self._came = asyncio.Event()
        self._strangers = 0
        self._agents = 0

    async def host(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._strangers >= STRANGERS:
            writer.transport.abort()
            return
        self._strangers += 1
        try:
            wire = await asyncio.wait_for(_known(reader, writer), HANDSHAKE_SECONDS)
        except (Broken, OSError, ValueError, asyncio.IncompleteReadError, asyncio.TimeoutError):
            writer.close()
            return
        finally:
            self._strangers -= 1
        channel = Channel(wire)
        self._idle.append(channel)
        self._came.set()
        with contextlib.suppress(Broken, OSError, asyncio.TimeoutError):
            await channel.listen()
        channel.end()
        with contextlib.suppress(ValueError):
            self._idle.remove(channel)

    async def agent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._agents >= AGENTS:
            writer.transport.abort()
            return
        self._agents += 1
        try:
            channel = await asyncio.wait_for(self._channel(writer), HOLD_SECONDS)
            try:
                await _pass_on(reader, channel)
            except (Broken, OSError):
                channel.end()
        except (Broken, OSError, asyncio.TimeoutError):
            writer.transport.abort()
        finally:
            self._agents -= 1

    async def _channel(self, agent: asyncio.StreamWriter) -> Channel:
        """Find a connection whose host answers now; after a pause many may be dead without our knowledge."""
        while True:
            while not self._idle:
                self._came.clear()
                await self._came.wait()
            channel = self._idle.popleft()
            channel.agent = agent
            with contextlib.suppress(Broken, asyncio.TimeoutError):
                await channel.wire.say("open")
                await asyncio.wait_for(channel.taken.wait(), ANSWER_SECONDS)
                if not channel.ended:
                    return channel
            channel.agent = None  # ending the channel must not close it
            channel.end()


async def _known(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Wire:
    """Accept a host that proves that it has the key, or raise Broken. Read the key each time: it may be new."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    named = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    key = named.get("sec-websocket-key", "")
    if head[0].split(" ")[:2] != ["GET", places.GATE_PATH] or not key:
        writer.write(REFUSAL)
        raise Broken("no host of ours")
    lines = ("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade")
    writer.write("\r\n".join((*lines, f"Sec-WebSocket-Accept: {frames.accepted(key)}", "", "")).encode())
    wire = Wire(reader, writer)
    nonce = secrets.token_hex(16)
    await wire.say(nonce)
    theirs, _, given = (await wire.hear()).partition(" ")
    secret = _key()
    if not proofs.holds(secret, proofs.HOST, f"{nonce} {theirs}", given):
        raise Broken("no host of ours")
    await wire.say(proofs.proof(secret, proofs.INSIDE, f"{nonce} {theirs}"))
    return wire


def _key() -> bytes:
    return Path(places.GATE_KEY).read_bytes()


async def _pass_on(reader: asyncio.StreamReader, channel: Channel) -> None:
    while data := await reader.read(BLOCK):
        await channel.wire.send(frames.BINARY, data)
    if not channel.ended:
        await channel.wire.say("end")


def _socket_for_agents() -> socket.socket:
    """Make the agents' socket, which anybody may use; replace one that a killed process left."""
    path = Path(places.GATE_SOCKET)
    path.unlink(missing_ok=True)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    found.bind(str(path))
    path.chmod(0o666)
    return found


async def serve(ready: int) -> None:
    board = Switchboard()
    agents = await asyncio.start_unix_server(board.agent, sock=_socket_for_agents(), backlog=AGENTS)
    # On every address, because E2B's proxy does not come over loopback. Each client must prove that it is the host.
    hosts = await asyncio.start_server(board.host, "0.0.0.0", 0, limit=HEAD_BYTES)  # noqa: S104
    os.write(ready, b"%d\n" % hosts.sockets[0].getsockname()[1])
    os.close(ready)
    await asyncio.gather(agents.serve_forever(), hosts.serve_forever())


def main(ready: int) -> None:
    with contextlib.suppress(OSError):
        # If memory runs out, the kernel must not end the way to the model.
        Path("/proc/self/oom_score_adj").write_text("-900", encoding="ascii")
    asyncio.run(serve(ready))
