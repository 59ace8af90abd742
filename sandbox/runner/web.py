"""Connects over the public network: HTTP to one server under its name, and CONNECT to named hosts.

It runs inside environments, and on the host for ports that an environment exposes.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import urlsplit

HEAD_BYTES = 64 << 10
HEAD_SECONDS = 10.0
CONNECT_SECONDS = 15.0
RETRY_SECONDS = 0.25
LINE_BYTES = 1 << 16
BLOCK = 1 << 16
NAMED_INSIDE = b"/gateway/packages/"  # its answers hold addresses, which must be those that are valid inside
REASON = "this host is not on the list of allowed hosts"


class Target(NamedTuple):
    """One server, and the headers of every request to it."""

    host: str
    port: int
    tls: bool
    path: str
    headers: dict[str, str]
    strip: str = ""  # to be removed from the beginning of a request's path

    @classmethod
    def of(cls, url: str, headers: dict[str, str]) -> Target:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SystemExit("forwarder: --gateway-url must be an https:// address")
        tls = parts.scheme == "https"
        return cls(parts.hostname, parts.port or (443 if tls else 80), tls, parts.path.rstrip("/"), headers)

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def listen(target: Target, *, hold: float) -> asyncio.Server:
    """Open a loopback port for a server; a new connection waits up to `hold` while the server is away."""
    context = ssl.create_default_context() if target.tls else None

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far = await _connect(target, context, hold)
        except (OSError, asyncio.TimeoutError):
            writer.transport.abort()
            return
        answers = asyncio.ensure_future(_answers(far[0], writer))
        try:
            while await _request(target, reader, far[1]):
                pass
            if far[1].can_write_eof():
                far[1].write_eof()
            await answers
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()
        finally:
            answers.cancel()
            far[1].close()
            writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512, limit=HEAD_BYTES)


async def _connect(target: Target, context: ssl.SSLContext | None, hold: float) -> Pair:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + hold
    while True:
        try:
            call = asyncio.open_connection(target.host, target.port, ssl=context, limit=LINE_BYTES)
            return await asyncio.wait_for(call, CONNECT_SECONDS)
        except (OSError, asyncio.TimeoutError):
            if loop.time() >= deadline:
                raise
        await asyncio.sleep(RETRY_SECONDS)


async def _request(target: Target, reader: asyncio.StreamReader, far: asyncio.StreamWriter) -> bool:
    """Pass one request on, under the server's name; False if there are no more."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return False
    new, headers = renamed(head, target)
    far.write(new)
    if "chunked" in headers.get("transfer-encoding", "").lower():
        await _chunks(reader, far)
    else:
        await _exactly(reader, far, int(headers.get("content-length", "0")))
    await far.drain()
    return True


def renamed(head: bytes, target: Target) -> tuple[bytes, dict[str, str]]:
    """Rewrite the head for the server; return it and its headers by name."""
    first, *lines = head[:-4].split(b"\r\n")
    method, _, rest = first.partition(b" ")
    if not rest.startswith(b"/"):
        raise ValueError("only requests to a path are passed on")
    if rest.startswith(target.strip.encode() + b"/"):
        rest = rest[len(target.strip) :]
    own = {"host": target.authority, **{name.lower(): value for name, value in target.headers.items()}}
    headers: dict[str, str] = {}
    kept = []
    for line in lines:
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
        if name.strip().lower() not in own:
            kept.append(line)
    if rest.startswith(NAMED_INSIDE):
        own["x-forgehand-inside"] = headers.get("host", "")
    kept += [f"{name}: {value}".encode("latin-1") for name, value in own.items()]
    return b"\r\n".join([method + b" " + target.path.encode() + rest, *kept]) + b"\r\n\r\n", headers


async def _chunks(reader: asyncio.StreamReader, far: asyncio.StreamWriter) -> None:
    while True:
        line = await reader.readuntil(b"\r\n")
        far.write(line)
        size = int(line.split(b";")[0], 16)
        if not size:
            break
        await _exactly(reader, far, size + 2)
    while line != b"\r\n":
        line = await reader.readuntil(b"\r\n")
        far.write(line)


async def _exactly(reader: asyncio.StreamReader, far: asyncio.StreamWriter, size: int) -> None:
    while size:
        data = await reader.read(min(size, BLOCK))
        if not data:
            raise asyncio.IncompleteReadError(b"", size)
        far.write(data)
        await far.drain()
        size -= len(data)


async def _answers(far: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
    """Pass answers on as they come. When the server hangs up, so do we, and our reader notices."""
    with contextlib.suppress(OSError):
        while data := await far.read(BLOCK):
            near.write(data)
            await near.drain()
    near.close()


async def listen_egress(allowed: frozenset[str], denied: str | None) -> asyncio.Server:
    """Proxy CONNECT to allowed hosts on port 443. The firewall around us allows the same, but gives no reasons."""
    from .forwarder import asked_for, note, relay

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
            tunnel = head.startswith(b"CONNECT ")
            host, port = asked_for(head)
            name = host.lower().rstrip(".")
            if not tunnel or port != "443" or not is_listed(name, allowed):
                note(denied, host, port)
                text = f"forgehand: {REASON if tunnel else 'use https'}\n"
                answer = f"HTTP/1.1 403 Forbidden\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}"
                writer.write(answer.encode())
                with contextlib.suppress(OSError):
                    await writer.drain()
                writer.close()
                return
            far = await asyncio.wait_for(asyncio.open_connection(name, 443), CONNECT_SECONDS)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError):
            writer.transport.abort()
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await relay((reader, writer), far)

    return await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)


def is_listed(host: str, hosts: Collection[str]) -> bool:
    """Decide whether a host is in the list itself, or below a name that begins with `*.`."""
    name = host.lower()
    return name in hosts or any(one.startswith("*.") and name.endswith(one[1:]) for one in hosts)
