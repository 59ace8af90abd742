"""The way to the provider over TLS: whole in both directions, kept, and no word to whom no certificate vouches for."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from bot.web.gateway import exchange as upstreams
from bot.web.gateway.connection import MOST_BYTES
from tests.world.certificates import Authority
from tests.world.gateway import REAL_KEY, rigged
from tests.world.provider import END, STREAM, everything, piece, provided, saying

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Authority]:
    """Trusted as an operator trusts one."""
    found = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(found.file))
    upstreams._tls.cache_clear()
    yield found
    upstreams._tls.cache_clear()


def cut(writer: asyncio.StreamWriter) -> None:
    """An end of which TLS does not tell."""
    writer.get_extra_info("socket")._sock.shutdown(socket.SHUT_WR)


async def test_large_bodies_come_whole_both_ways_and_the_connection_is_kept(authority: Authority) -> None:
    sent, text = os.urandom(20 << 20), os.urandom(3 << 20)

    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM)
        for start in range(0, len(text), 5_000):
            writer.write(piece(text[start : start + 5_000]))
        writer.write(END)
        await writer.drain()

    async with provided(say, tls=authority.server()) as (provider, upstream):
        for _ in range(2):
            async with upstream.ask("/v1", [], sent) as answer:
                got = b"".join(await everything(answer))
            assert hashlib.sha256(got).digest() == hashlib.sha256(text).digest()
    assert all(asked.endswith(sent) for asked in provider.asked) and len(provider.asked) == 2
    assert provider.connections == 1, "tickets that follow the handshake are no news"


async def test_who_reads_slowly_keeps_the_sender_waiting(authority: Authority) -> None:
    text, sent = b"x" * 10_000, 0

    async def say(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(STREAM)
        for sent in range(1, 2_001):  # noqa: B007 - how far it got
            writer.write(piece(text))
            await writer.drain()
        writer.write(END)

    async with provided(say, tls=authority.server()) as (_, upstream), upstream.ask("/v1", [], b"") as answer:
        first = await answer.next()
        for _ in range(10_000):  # time for all of it, if nobody held it back
            await asyncio.sleep(0)
        assert len(first) <= 2 * MOST_BYTES
        assert sent < 2_000
        assert first + b"".join(await everything(answer)) == text * 2_000


async def test_who_leaves_ends_the_stream(authority: Authority) -> None:
    async with provided(saying(STREAM, piece(b"a")), tls=authority.server()) as (provider, upstream):
        async with upstream.ask("/v1", [], b"") as answer:
            assert await answer.next() == b"a"
        async with asyncio.timeout(5):
            await provider.left.wait()


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        (WHOLE % (200_000, b"x" * 200_000), True),
        (WHOLE % (200_001, b"x" * 200_000), False),
        (STREAM + piece(b"x" * 200_000) + END, True),
        (STREAM + piece(b"x" * 200_000), False),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 200_000, False),
    ],
)
async def test_an_end_of_which_tls_does_not_tell_is_none(authority: Authority, said: bytes, whole: bool) -> None:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await writer.drain()
        cut(writer)

    async with provided(say, tls=authority.server()) as (_, upstream), upstream.ask("/v1", [], b"") as answer:
        assert await answer.whole(1 << 20) == (b"x" * 200_000 if whole else None)


async def test_an_end_of_which_tls_tells_is_one(authority: Authority) -> None:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 200_000)
        writer.close()

    async with provided(say, tls=authority.server()) as (_, upstream), upstream.ask("/v1", [], b"") as answer:
        assert await answer.whole(1 << 20) == b"x" * 200_000


async def test_a_kept_connection_that_was_cut_is_not_used_again(authority: Authority) -> None:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + END)
        cut(writer)

    async with provided(say, tls=authority.server()) as (provider, upstream):
        for _ in range(2):
            async with upstream.ask("/v1", [], b"") as answer:
                assert await everything(answer) == []
            async with asyncio.timeout(5):
                await provider.left.wait()
    assert provider.connections == 2


@pytest.mark.parametrize(
    ("shown", "word"),
    [
        ({"name": x509.DNSName("elsewhere.example")}, "not valid for '127.0.0.1'"),
        ({"ends": timedelta(days=-1)}, "expired"),
        ({"own": True}, "self-signed|self signed"),
    ],
)
async def test_whom_no_certificate_vouches_for_gets_nothing_and_the_operator_hears_why(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture, shown: dict[str, object], word: str
) -> None:
    heard = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=authority.server(**shown))  # type: ignore[arg-type]
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with rigged(tmp_path / "data", upstream=url) as rig:
        token, key = await rig.token()
        answer = await rig.ask(token)
        assert (await rig.settled(key)).usd == 0
    server.close()
    await server.wait_closed()
    assert answer.status_code == 502 and answer.json()["error"]["type"] == "api_error"
    assert re.search(word, caplog.text), caplog.text
    assert REAL_KEY not in caplog.text + answer.text and token not in caplog.text + answer.text
    assert heard == []
