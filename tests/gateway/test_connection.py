"""A connection to the provider: nothing is lost or reordered, what broke it comes last, who is too fast waits."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import warnings

import pytest

from bot.web.gateway import connection
from bot.web.gateway.connection import MOST_BYTES, ConnectionBroken
from bot.web.gateway.exchange import Unreachable, Upstream
from tests.world.provider import END, STREAM, everything, piece, provided, saying


async def test_what_has_come_is_given_out_at_once_and_in_order() -> None:
    more = asyncio.Event()

    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + piece(b"a") + piece(b"b") + piece(b"c"))
        await more.wait()
        writer.write(piece(b"d") + END)

    async with provided(say) as (provider, upstream), upstream.ask("/v1?x=1", [("x-api-key", "k")], b"body") as answer:
        assert answer.status == 200 and answer.headers["content-type"] == "text/event-stream"
        assert await answer.next() == b"abc"
        waiting = asyncio.create_task(answer.next())
        more.set()
        assert await waiting == b"d"
        assert await answer.next() == b""
        assert await answer.next() == b""
    assert provider.asked[0].startswith(b"POST /base/v1?x=1 HTTP/1.1\r\nhost: 127.0.0.1:")
    assert provider.asked[0].endswith(b"x-api-key: k\r\ncontent-length: 4\r\n\r\nbody")


async def test_an_empty_stream_ends_and_its_connection_serves_the_next_request() -> None:
    async with provided(saying(b"HTTP/1.1 103 Early Hints\r\n\r\n", STREAM, END)) as (provider, upstream):
        for _ in range(3):
            async with upstream.ask("/v1", [], b"") as answer:
                assert answer.status == 200 and await everything(answer) == []
    assert provider.connections == 1 and len(provider.asked) == 3


@pytest.mark.parametrize("kept", [b"", b"Content-Length: 2\r\nConnection: close\r\n"])
async def test_an_answer_that_ends_with_its_connection_is_whole_and_the_next_gets_another(kept: bytes) -> None:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n" + kept + b"\r\n{}")
        writer.close()

    async with provided(say) as (provider, upstream):
        for _ in range(2):
            async with upstream.ask("/v1", [], b"") as answer:
                assert await answer.whole(10) == b"{}"
    assert provider.connections == 2


async def test_what_broke_the_stream_is_raised_after_its_pieces() -> None:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + piece(b"a"))
        writer.close()

    async with provided(say) as (_, upstream), upstream.ask("/v1", [], b"") as answer:
        assert await answer.next() == b"a"
        for _ in range(2):
            with pytest.raises(ConnectionBroken):
                await answer.next()


@pytest.mark.parametrize(
    "said",
    [b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000 + b"\r\n", STREAM + b"zz\r\n", b""],
)
async def test_what_is_no_answer_or_none_in_time_is_broken(said: bytes) -> None:
    async with provided(saying(said), 0.3) as (_, upstream):
        with pytest.raises(ConnectionBroken):
            async with upstream.ask("/v1", [], b"") as answer:
                await everything(answer)


async def test_an_answer_to_half_a_request_is_one_and_nothing_follows_the_half() -> None:
    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")

    opened: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(early, "127.0.0.1", 0)
    upstream = Upstream(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", 5.0)
    for _ in range(2):
        async with upstream.ask("/v1", [], b"x" * (32 << 20)) as answer:
            assert (answer.status, await answer.whole(10)) == (413, b"{}")
    for writer in opened:
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    server.close()
    await server.wait_closed()
    assert len(opened) == 2


async def test_what_nobody_asked_for_is_nobodys_answer() -> None:
    async with provided(saying(STREAM, END, STREAM, piece(b"smuggled"), END)) as (provider, upstream):
        for _ in range(2):
            async with upstream.ask("/v1", [], b"") as answer:
                assert await everything(answer) == []
    assert provider.connections == 2


async def test_a_sender_that_is_too_fast_waits_and_nothing_is_lost() -> None:
    text, sent = b"x" * 10_000, 0

    async def say(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(STREAM)
        for sent in range(1, 2_001):  # noqa: B007 - how far it got
            writer.write(piece(text))
            await writer.drain()
        writer.write(END)

    async with provided(say) as (_, upstream), upstream.ask("/v1", [], b"") as answer:
        first = await answer.next()
        for _ in range(10_000):  # time for all of it, if nobody held it back
            await asyncio.sleep(0)
        assert len(first) <= 2 * MOST_BYTES
        assert sent < 2_000
        assert first + b"".join(await everything(answer)) == text * 2_000


async def test_a_reader_that_leaves_ends_the_stream() -> None:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + piece(b"a"))

    async with provided(say) as (provider, upstream):
        async with upstream.ask("/v1", [], b"") as answer:
            assert await answer.next() == b"a"
        async with asyncio.timeout(5):
            await provider.left.wait()


async def test_a_client_that_leaves_at_whatever_moment_leaves_no_socket_open() -> None:
    """Also in the very step in which the connection is made."""

    async def ask(upstream: Upstream) -> None:
        async with upstream.ask("/v1", [], b"") as answer:
            await everything(answer)

    async with provided(saying(STREAM)) as (provider, upstream):
        for steps in range(40):
            asking = asyncio.create_task(ask(upstream))
            for _ in range(steps):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
        assert provider.connections > 5, "some left later"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ResourceWarning)
            async with asyncio.timeout(5):
                await asyncio.gather(*filter(None, provider.tasks))
            gc.collect()
    assert [str(one.message) for one in caught] == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_an_address_has_any_form_of_host_and_a_path_before_ours(host: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(STREAM + END)
        writer.close()

    heads: list[bytes] = []
    try:
        server = await asyncio.start_server(serve, host.strip("[]"), 0)
    except OSError:
        pytest.skip(f"there is no {host} here")
    port = server.sockets[0].getsockname()[1]
    async with Upstream(f"http://{host}:{port}/some/where/").ask("/v1", [], b"") as answer:
        assert await everything(answer) == []
    server.close()
    await server.wait_closed()
    assert heads[0].startswith(b"POST /some/where/v1 HTTP/1.1\r\nhost: %s:%d\r\n" % (host.encode(), port))


async def test_what_can_be_no_name_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        async with Upstream("https://two..dots").ask("/v1", [], b""):
            pass


async def test_nobody_there_is_told_apart_from_an_answer_that_broke() -> None:
    with pytest.raises(Unreachable):
        async with Upstream("http://127.0.0.1:9").ask("/v1", [], b""):
            pass


def test_a_line_break_in_a_header_makes_no_second_one() -> None:
    with pytest.raises(ValueError, match="line break"):
        connection.request("host", "/v1", [("x", "y\r\nx-api-key: z")], 0)


async def test_an_idle_connection_that_was_closed_is_not_used_again() -> None:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + END)
        writer.close()

    async with provided(say) as (provider, upstream):
        async with upstream.ask("/v1", [], b"") as answer:
            assert await everything(answer) == []
        async with asyncio.timeout(5):
            await provider.left.wait()
        async with upstream.ask("/v1", [], b"") as answer:
            assert await everything(answer) == []
    assert provider.connections == 2
