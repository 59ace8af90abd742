"""The egress proxy over its socket: what it lets through, and what it says to the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sandbox import egress
from sandbox.egress import EgressProxy, is_public
from tests.world import tls_hellos
from tests.world.environments import short_folder

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HELLO = tls_hellos.hello("packages.example")


@pytest.mark.acceptance("C15")
@pytest.mark.parametrize(
    "address", ["1.1.1.1", "151.101.0.223", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.acceptance("C15")
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::1",
        "2002:a00:1::",
    ],
)
def test_addresses_that_may_be_ours(address: str) -> None:
    assert not is_public(address)


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as found:
        yield found


class World:
    """A proxy whose names resolve to a table and whose connections end at an echo on loopback."""

    def __init__(self, path: Path, port: int) -> None:
        self.names: dict[str, list[str]] = {"packages.example": ["151.101.0.223"]}
        self.dialled: list[str] = []
        self.port = port
        self.path = path
        self.proxy = EgressProxy(
            path, lambda host: host in self.names, resolve=self.resolve, connect=self.connect, clock=lambda: 5.0
        )

    async def resolve(self, name: str) -> list[str]:
        if not self.names[name]:
            raise OSError
        return self.names[name]

    async def connect(self, address: str, port: int) -> Connection:
        self.dialled.append(address)
        if address == "9.9.9.9":
            raise OSError
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, request: bytes, *, then: bytes = b"") -> bytes:
        reader, writer = await asyncio.open_unix_connection(self.path)
        try:
            writer.write(request)
            if then:
                writer.write(HELLO + then)
                writer.write_eof()
            async with asyncio.timeout(10):
                return await reader.read()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.write(b"|end")
    writer.close()


@pytest.fixture
async def world(folder: Path) -> AsyncIterator[World]:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    found = World(folder / "egress.sock", server.sockets[0].getsockname()[1])
    await found.proxy.start()
    yield found
    await found.proxy.close()
    server.close()


async def test_an_allowed_host_is_reached_with_half_close(world: World) -> None:
    blob = bytes(range(256)) * 4000
    answer = await world.ask(b"CONNECT Packages.Example.:443 HTTP/1.1\r\nHost: x\r\n\r\n", then=blob)
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n" + HELLO + blob + b"|end"
    assert list(world.proxy.denied) == []


@pytest.mark.acceptance("C15")
@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"CONNECT github.com:443 HTTP/1.1", b"403"),
        (b"CONNECT packages.example:80 HTTP/1.1", b"403"),
        (b"CONNECT [::1]:443 HTTP/1.1", b"403"),
        (b"CONNECT 127.0.0.1:443 HTTP/1.1", b"403"),
        (b"CONNECT packages.example:443:443 HTTP/1.1", b"403"),
        (b"CONNECT packages.example@evil.example:443 HTTP/1.1", b"403"),
        (b"GET http://packages.example/ HTTP/1.1", b"405"),
        (b"CONNECT packages.example HTTP/1.1", b"405"),
        (b"CONNECT  packages.example:443 HTTP/1.1", b"405"),
        (b"\x16\x03\x01", b"405"),
    ],
)
async def test_anything_else_is_refused(world: World, request_line: bytes, status: bytes) -> None:
    answer = await world.ask(request_line + b"\r\n\r\n")
    assert answer.split()[1] == status
    assert world.dialled == []


@pytest.mark.acceptance("C15")
@pytest.mark.parametrize(
    ("request_line", "where"),
    [
        (b"GET http://packages.example/simple?x=a:1 HTTP/1.1", [("packages.example", 80)]),
        (b"POST http://me:word@Evil.example:8080/x HTTP/1.0", [("Evil.example", 8080)]),
        (b"GET http://[::1]/ HTTP/1.1", [("[::1]", 80)]),
        (b"CONNECT evil.example:22 HTTP/1.1", [("evil.example", 22)]),
        (b"CONNECT evil.example:99999999 HTTP/1.1", [("evil.example", 99999)]),
        (b"GET / HTTP/1.1", []),
        (b"\x16\x03\x01", []),
        (b"GET http:///x HTTP/1.1", []),
    ],
)
async def test_what_is_refused_is_noted_whatever_it_was_to_be_reached_by(
    world: World, request_line: bytes, where: list[tuple[str, int]]
) -> None:
    """Package managers that speak http without TLS do not ask for a tunnel."""
    await world.ask(request_line + b"\r\n\r\n")
    assert [(one.host, one.port) for one in world.proxy.denied] == where


@pytest.mark.acceptance("C15")
async def test_a_name_with_any_address_of_ours_is_refused_and_logged(world: World) -> None:
    world.names["rebound.example"] = ["1.1.1.1", "169.254.169.254"]
    assert b" 403 " in await world.ask(b"CONNECT rebound.example:443 HTTP/1.1\r\n\r\n")
    (denied,) = world.proxy.denied
    assert (denied.host, denied.port, denied.at) == ("rebound.example", 443, 5.0)
    assert "not public" in denied.reason
    assert world.dialled == []


async def test_addresses_are_tried_in_turn(world: World) -> None:
    world.names["two.example"] = ["9.9.9.9", "1.1.1.1"]
    world.names["none.example"] = ["9.9.9.9"]
    world.names["lost.example"] = []
    assert b" 200 " in await world.ask(b"CONNECT two.example:443 HTTP/1.1\r\n\r\n", then=b"x")
    assert world.dialled == ["9.9.9.9", "1.1.1.1"]
    assert b" 502 " in await world.ask(b"CONNECT none.example:443 HTTP/1.1\r\n\r\n")
    assert b" 502 " in await world.ask(b"CONNECT lost.example:443 HTTP/1.1\r\n\r\n")


async def test_a_head_without_end_is_cut_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await world.ask(b"CONNECT packages.example:443 HTTP/1.1\r\n" + b"X: y\r\n" * 20_000) == b""
    monkeypatch.setattr(egress, "HEAD_SECONDS", 0.05)
    assert await world.ask(b"CONNECT pack") == b""


async def test_connections_are_counted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress, "CONNECTIONS_OF_ONE_USER", 0)
    assert b" 503 " in await world.ask(b"CONNECT packages.example:443 HTTP/1.1\r\n\r\n")
    monkeypatch.undo()
    assert b" 200 " in await world.ask(b"CONNECT packages.example:443 HTTP/1.1\r\n\r\n", then=b"x")


async def test_a_new_proxy_takes_the_place_of_a_dead_ones_socket(world: World, folder: Path) -> None:
    await world.proxy.close()
    world.path.touch()
    await world.proxy.start()
    assert world.path.stat().st_mode & 0o777 == 0o666
    assert b" 200 " in await world.ask(b"CONNECT packages.example:443 HTTP/1.1\r\n\r\n", then=b"x")
