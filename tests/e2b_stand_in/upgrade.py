"""WebSockets to a port inside: the proxy lets them through byte for byte, to whoever has the traffic token."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from starlette.datastructures import Headers

from tests.e2b_stand_in.registry import Registry
from tests.e2b_stand_in.sandbox import Sandbox

BLOCK = 1 << 16
Meant = Callable[[Headers], tuple[str, int]]


class Upgrades:
    """All that are open, for a test to cut."""

    def __init__(self, registry: Registry, meant: Meant) -> None:
        self.registry = registry
        self.meant = meant
        self.open: set[Upgraded] = set()
        self.count = 0
        """That were ever let through."""

    def protocol(self, **_: Any) -> Upgraded:
        """As uvicorn makes the protocol that takes over a connection."""
        return Upgraded(self)

    def cut(self) -> int:
        """As a proxy that restarts: all at once, without a word. How many there were."""
        found = list(self.open)
        for one in found:
            one.drop()
        return len(found)


class Upgraded(asyncio.Protocol):
    """One connection from its head on."""

    def __init__(self, upgrades: Upgrades) -> None:
        self._upgrades = upgrades
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._transport: Any = None
        self._head = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._tasks:
            self._queue.put_nowait(data)
            return
        self._head += data
        if b"\r\n\r\n" in self._head:
            self._tasks.append(asyncio.ensure_future(self._run()))

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._upgrades.open.discard(self)
        self._queue.put_nowait(b"")

    def drop(self) -> None:
        self._transport.abort()

    async def _run(self) -> None:
        head, _, rest = self._head.partition(b"\r\n\r\n")
        lines = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
        headers = Headers(raw=[(name.strip().lower(), value.strip()) for name, _, value in lines])
        wanted, port = self._upgrades.meant(headers)
        sandbox = self._upgrades.registry.all.get(wanted)
        if sandbox is None or sandbox.state != "running":
            return self._refuse(502, {"sandboxId": wanted, "message": "The sandbox was not found", "code": 502})
        closed = sandbox.network.get("allowPublicTraffic") is False
        if closed and headers.get("e2b-traffic-access-token") != sandbox.traffic_token:
            return self._refuse(403, {"sandboxId": sandbox.id, "message": "traffic token is missing", "code": 403})
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return self._refuse(502, {"sandboxId": wanted, "message": "port is not open", "port": port, "code": 502})
        self._upgrades.open.add(self)
        self._upgrades.count += 1
        self._tasks += [
            asyncio.ensure_future(self._up(head + b"\r\n\r\n" + rest, writer)),
            asyncio.ensure_future(self._end_with(sandbox)),
        ]
        try:
            while data := await reader.read(BLOCK):
                self._transport.write(data)
        except OSError:
            pass
        finally:
            writer.close()
            self._transport.close()
            self._tasks[-1].cancel()
        return None

    async def _up(self, first: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        try:
            while data := await self._queue.get():
                writer.write(data)
                await writer.drain()
        except OSError:
            self.drop()
        writer.close()

    async def _end_with(self, sandbox: Sandbox) -> None:
        """A pause or an end breaks it off."""
        await sandbox.interrupted.wait()
        self.drop()

    def _refuse(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        head = f"HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        self._transport.write(head.encode() + b"Connection: close\r\n\r\n" + data)
        self._transport.close()
