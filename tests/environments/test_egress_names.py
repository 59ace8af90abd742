"""Through the egress proxy goes TLS that names the very host that was asked for, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from sandbox import hello as reading
from sandbox import named
from sandbox.egress import EgressProxy
from tests.world import tls_hellos as tls
from tests.world.environments import short_folder

HOST = "packages.example"
ANSWER = b"HTTP/1.1 200 Connection established\r\n\r\n"
pytestmark = pytest.mark.review("security-10")


class Far:
    """A host that keeps what it was sent, and says what it is to say after the first of it."""

    def __init__(self) -> None:
        self.heard = b""
        self.says = b"\x15\x03\x03\x00\x02\x01\x00"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said = False
        while data := await reader.read(1 << 16):
            self.heard += data
            if not said:
                writer.write(self.says)
                said = True
        writer.close()


@pytest.fixture
async def far() -> AsyncIterator[Far]:
    yield Far()


@pytest.fixture
async def proxy(far: Far) -> AsyncIterator[EgressProxy]:
    server = await asyncio.start_server(far.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def resolve(name: str) -> list[str]:
        return ["151.101.0.223"]

    async def connect(address: str, number: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", port)

    with short_folder() as folder:
        found = EgressProxy(folder / "e.sock", lambda host: host == HOST, resolve=resolve, connect=connect)
        await found.start()
        yield found
        await found.close()
        server.close()


def path_of(proxy: EgressProxy) -> Path:
    return proxy._path


async def sent(proxy: EgressProxy, *pieces: bytes, ends: bool = True, host: str = HOST) -> bytes:
    """What the client hears after its tunnel is there, whose bytes come in these pieces."""
    reader, writer = await asyncio.open_unix_connection(path_of(proxy))
    try:
        async with asyncio.timeout(10):
            writer.write(f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode())
            assert await reader.readexactly(len(ANSWER)) == ANSWER
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if ends:
                writer.write_eof()
            with suppress(ConnectionError):
                return await reader.read()
            return b""
    finally:
        writer.close()


WHOLE = tls.hello(HOST)


@pytest.mark.parametrize(
    "pieces",
    [
        [WHOLE],
        [tls.hello("Packages.EXAMPLE")],
        [WHOLE[at : at + 1] for at in range(len(WHOLE))],
        [tls.split(tls.message(HOST), 1)],
        [tls.split(tls.message(HOST), 100)],
        [WHOLE[:3], WHOLE[3:60], WHOLE[60:]],
    ],
    ids=["whole", "case", "byte by byte", "records of one byte", "records", "pieces"],
)
async def test_the_name_is_found_however_the_hello_is_cut(proxy: EgressProxy, far: Far, pieces: list[bytes]) -> None:
    assert await sent(proxy, *pieces, tls.record(b"data", 23)) == far.says
    assert far.heard == b"".join(pieces) + tls.record(b"data", 23)
    assert not proxy.denied


@pytest.mark.parametrize("host", ["PACKAGES.example", "packages.example."])
async def test_a_host_asked_for_in_another_spelling_is_the_same(proxy: EgressProxy, far: Far, host: str) -> None:
    assert await sent(proxy, WHOLE, host=host) == far.says


REFUSED = {
    "another name": tls.hello("evil.example"),
    "below the name": tls.hello(f"a.{HOST}"),
    "no name": tls.hello(None),
    "another name in records": tls.split(tls.message("evil.example"), 7),
    "two names": tls.record(tls.extended(HOST, 0, tls.named(b"evil.example"))),
    "two in one": tls.record(tls.extended(None, 0, tls.named(HOST.encode(), b"evil.example"))),
    "of another type": tls.record(tls.extended(None, 0, tls.named(HOST.encode(), kind=1))),
    "empty": tls.record(tls.extended(None, 0, b"")),
    "a zero byte": tls.record(tls.extended(None, 0, tls.named(HOST.encode() + b"\0"))),
    "encrypted hello": tls.record(tls.extended(HOST, 0xFE0D, b"\0\0\1\0\1\0\0\0\0\0")),
    "encrypted name": tls.record(tls.extended(HOST, 0xFFCE, b"xx")),
    "plain http": b"GET / HTTP/1.1\r\nHost: packages.example\r\n\r\n",
    "ssh": b"SSH-2.0-x\r\n",
    "data first": tls.record(b"x", 23) + WHOLE,
    "an empty record": tls.record(b"") + WHOLE,
    "ssl 2": b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10" + b"\0" * 40,
    "more behind it": tls.record(tls.message(HOST) + tls.message("evil.example")),
    "another message": tls.record(b"\x10" + tls.message(HOST)[1:]),
    "cut within": tls.record(b"\x01\x00\x00\x10" + tls.message(HOST)[4:20]),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_anything_else_never_reaches_the_host(proxy: EgressProxy, far: Far, what: str) -> None:
    heard = await sent(proxy, REFUSED[what], tls.record(b"stolen", 23))
    assert heard in (reading.UNRECOGNISED_NAME, b"")
    assert far.heard == b""
    (denied,) = proxy.denied
    assert denied.host == (
        "evil.example" if what.startswith("another name") else f"a.{HOST}" if what == "below the name" else HOST
    )
    assert denied.reason.startswith("the connection ")


async def test_a_second_hello_must_name_the_same(proxy: EgressProxy, far: Far) -> None:
    """A server may ask for another; until it has said whether it does, nothing that follows the first is passed on."""
    far.says = tls.RETRY
    assert await sent(proxy, WHOLE + tls.hello("evil.example")) == tls.RETRY + reading.UNRECOGNISED_NAME
    assert far.heard == WHOLE
    early = tls.record(b"early", 23) + tls.record(b"\1", 20)
    assert (await sent(proxy, WHOLE + early + tls.hello("evil.example"))).endswith(reading.UNRECOGNISED_NAME)
    assert far.heard == WHOLE * 2
    good = WHOLE + early + tls.hello(HOST) + tls.record(b"data", 23)
    far.heard = b""
    assert await sent(proxy, good) == tls.RETRY
    assert far.heard == good


async def test_a_hello_that_does_not_come_is_not_waited_for(
    proxy: EgressProxy, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named, "HELLO_SECONDS", 0.1)
    assert await sent(proxy, ends=False) == b""
    assert await sent(proxy, WHOLE[:-1], ends=False) == b""
    assert far.heard == b""


async def test_a_hello_without_end_is_not_gathered(proxy: EgressProxy, far: Far) -> None:
    for length, heard in ((reading.HELLO_BYTES - 4, b""), (reading.HELLO_BYTES - 3, reading.UNRECOGNISED_NAME)):
        begun = b"\x01" + length.to_bytes(3, "big") + b"x" * 1000
        assert await sent(proxy, tls.record(begun)) == heard
    assert far.heard == b""
