"""Lets an environment reach other hosts: a CONNECT proxy on a Unix socket, for TLS to allowed hosts on port 443."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import re
import socket
import struct
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from sandbox import hello, named
from sandbox.named import Connection
from sandbox.runner.forwarder import asked_for

HEAD_BYTES = 8 << 10
HEAD_SECONDS = 10.0
RESOLVE_SECONDS = 10.0
CONNECT_SECONDS = 10.0
CONNECTIONS = 512
CONNECTIONS_OF_ONE_USER = 128

_REQUEST = re.compile(rb"CONNECT ([!-~]+):([0-9]{1,5}) HTTP/1\.[01]\r\n")
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9])?")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

Resolve = Callable[[str], Awaitable[list[str]]]
Connect = Callable[[str, int], Awaitable[Connection]]


@dataclass(frozen=True)
class Denied:
    host: str
    port: int
    reason: str
    peer_uid: int  # identifies the environment if each has a separate user
    at: float


class _Refused(Exception):
    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def is_public(address: str) -> bool:
    """Return False for every address that may be on this host or in its networks, also if wrapped in an IPv6 form."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if inner is None and found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if found.is_site_local:
            return False
    return found.is_global and not (found.is_multicast or found.is_reserved or found.is_unspecified)


def is_own_user(uid: int) -> bool:
    return uid == os.geteuid()


async def resolve_host(host: str) -> list[str]:
    """Return all addresses that the system's resolver knows."""
    found = await asyncio.get_running_loop().getaddrinfo(host, 443, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class EgressProxy:
    """A proxy that listens from `start` to `close`. `denied` holds the last refusals, oldest first."""

    def __init__(
        self,
        socket_path: Path,
        allowed: Callable[[str], bool],
        *,
        admits: Callable[[int], bool] = is_own_user,
        resolve: Resolve = resolve_host,
        connect: Connect = asyncio.open_connection,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = socket_path
        self._allowed = allowed
        self._admits = admits
        self._resolve = resolve
        self._connect = connect
        self._clock = clock
        self._server: asyncio.AbstractServer | None = None
        self._open: Counter[int] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self.denied: deque[Denied] = deque(maxlen=500)

    async def start(self) -> None:
        self._path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._accept, self._path, limit=HEAD_BYTES, backlog=512)
        # Other users must connect. The folder, which they cannot write to, and `admits` guard the socket.
        self._path.chmod(0o666)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._path.unlink(missing_ok=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        peer = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        user = int(struct.unpack("3i", peer)[1])
        self._open[user] += 1
        try:
            await self._serve(reader, writer, user)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            self._open[user] -= 1
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: int) -> None:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
        try:
            if not self._admits(user):
                raise _Refused("403 Forbidden", "this way out is for sandboxes")
            name, far = await self._far(head, user)
        except _Refused as refused:
            writer.write(f"HTTP/1.1 {refused.status}\r\nContent-Type: text/plain\r\n".encode())
            text = f"forgehand: {refused.reason}\n".encode()
            writer.write(b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(text), text))
            await asyncio.wait_for(writer.drain(), HEAD_SECONDS)
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await named.carry((reader, writer), far, name)
        except named.NotNamed as wrong:
            other = wrong.name if wrong.name is not None and _HOST.fullmatch(wrong.name) else name
            self.denied.append(Denied(other, 443, wrong.reason, user, self._clock()))
            writer.write(hello.UNRECOGNISED_NAME)
            await asyncio.wait_for(writer.drain(), HEAD_SECONDS)
        finally:
            far[1].close()

    async def _far(self, head: bytes, user: int) -> tuple[str, Connection]:
        """Return the requested name and a connection to it. A refusal is noted if the request names any host."""
        try:
            request = _REQUEST.match(head)
            if request is None:
                raise _Refused("405 Method Not Allowed", "only CONNECT host:443 is understood; use https")
            name = request[1].decode("ascii").lower().removesuffix(".")
            self._check(name, int(request[2]), user)
            for address in (await self._addresses(name))[:4]:
                with contextlib.suppress(OSError, TimeoutError):
                    return name, await asyncio.wait_for(self._connect(address, 443), CONNECT_SECONDS)
            raise _Refused("502 Bad Gateway", "the host did not answer")
        except _Refused as refused:
            host, port = asked_for(head)
            if host and port.isdecimal():
                self.denied.append(Denied(host[:253], int(port[:5]), refused.reason, user, self._clock()))
            raise

    def _check(self, name: str, port: int, user: int) -> None:
        if self._open.total() > CONNECTIONS or self._open[user] > CONNECTIONS_OF_ONE_USER:
            raise _Refused("503 Service Unavailable", "too many connections")
        if port != 443:
            raise _Refused("403 Forbidden", "only port 443 is open")
        last = name.rpartition(".")[2]
        is_address = last.isdigit() or last.startswith("0x")  # resolvers also take `127.1` and `0x7f000001` for one
        if not _HOST.fullmatch(name) or is_address or not self._allowed(name):
            raise _Refused("403 Forbidden", "this host is not on the list of allowed hosts")

    async def _addresses(self, name: str) -> list[str]:
        """Resolve the name once, so that we connect to the addresses that we checked."""
        try:
            found = await asyncio.wait_for(self._resolve(name), RESOLVE_SECONDS)
        except (OSError, UnicodeError, TimeoutError):
            raise _Refused("502 Bad Gateway", "the name could not be resolved") from None
        if not found or not all(is_public(address) for address in found):
            raise _Refused("403 Forbidden", "the name points at an address that is not public")
        return found
