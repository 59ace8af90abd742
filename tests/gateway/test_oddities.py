"""What a broken or hostile provider, or something in between, may say: told as what it is, in bounded time and room."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.web.gateway import Tuning
from bot.web.gateway.connection import ConnectionBroken
from bot.web.gateway.exchange import ProviderAnswer
from tests.world.gateway import kind, rigged
from tests.world.provider import END, STREAM, everything, piece, provided, saying

OK = b"HTTP/1.1 200 OK\r\n"
TWO = OK + b"Content-Length: 2\r\n\r\n{}"
FLOOD = 1 << 20


async def taken(answer: ProviderAnswer) -> bytes:
    return b"".join(await everything(answer))


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" + TWO,
        b"HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n" + TWO,
        b"HTTP/1.1 103 Early Hints\r\nX-Api-Key: no\r\n\r\n" * 3 + TWO,
        STREAM + b"2;name=value;flag\r\n{}\r\n" + END,
        STREAM + piece(b"{}") + b"0\r\nExpires: never\r\nX-Api-Key: no\r\n\r\n",
        OK + b"X-Name: \xff\xfe\r\nContent-Length: 2\r\n\r\n{}",
        OK + b"Upgrade: h2c\r\nConnection: upgrade\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
async def test_what_is_odd_but_whole_is_an_answer_and_so_is_the_next(said: bytes) -> None:
    async with provided(saying(said)) as (provider, upstream):
        for _ in range(2):
            async with upstream.ask("/v1", [], b"") as answer:
                assert (answer.status, await taken(answer)) == (200, b"{}")
                assert "x-api-key" not in answer.headers, "of another answer"
    assert len(provider.asked) == 2


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", b"{}"),
        (OK + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}", b"{}"),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}", b""),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n" + piece(b"{}"), b""),
        (TWO + b"more", b"{}"),
        (TWO + TWO, b"{}"),
    ],
)
async def test_after_what_may_be_followed_by_more_comes_another_connection(said: bytes, whole: bytes) -> None:
    async with provided(saying(said)) as (provider, upstream):
        for _ in range(2):
            async with upstream.ask("/v1", [], b"") as answer:
                assert await taken(answer) == whole
    assert provider.connections == 2


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + TWO,
        OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
        OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n" + piece(b"{}") + END,
        OK + b"Content-Length: -1\r\n\r\n{}",
        OK + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
        OK + b"Content-Length : 2\r\n\r\n{}",
        STREAM + b"fffffffffffffffff\r\n{}\r\n" + END,
        STREAM + b"-2\r\n{}\r\n" + END,
        STREAM + b"2\n{}\n" + END,
        OK + b"X-Name: a\0b\r\nContent-Length: 2\r\n\r\n{}",
        STREAM + piece(b"{}") + b"0\r\nContent-Length: 2\r\n\r\n",
        OK + b"X-Name: a\r\n b: c\r\nContent-Length: 2\r\n\r\n{}",
        OK + b"X-Name: a\rb: c\r\nContent-Length: 2\r\n\r\n{}",
        OK + b"X-Name: a\nb: c\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
async def test_what_can_be_read_in_two_ways_is_broken(said: bytes) -> None:
    async with provided(saying(said), 2.0) as (_, upstream):
        with pytest.raises(ConnectionBroken, match="what came is no answer"):
            async with upstream.ask("/v1", [], b"") as answer:
                await taken(answer)


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * (FLOOD // 28),
        OK + b"X-Name: " + b"a" * FLOOD,
        STREAM + b"2;" + b"a" * FLOOD,
        STREAM + piece(b"{}") + b"0\r\n" + b"x: y\r\n" * (FLOOD // 6),
        STREAM + piece(b"{}") + b"0\r\nx: " + b"y" * FLOOD,
        STREAM + b"0" * FLOOD,
    ],
)
async def test_a_flood_of_what_is_no_body_is_cut_off(said: bytes) -> None:
    async with provided(saying(said)) as (_, upstream):
        with pytest.raises(ConnectionBroken, match="too much of the answer"):
            async with upstream.ask("/v1", [], b"") as answer:
                await taken(answer)


@pytest.mark.parametrize("head", [b"", STREAM + b"2;"])
async def test_what_drips_without_end_has_no_more_time_than_silence(head: bytes) -> None:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(b"a" if head else b"HTTP/1.1 103 Early Hints\r\n\r\n")
            await asyncio.sleep(0.05)  # the pace of it

    async with provided(say, 0.4) as (_, upstream):
        with pytest.raises(ConnectionBroken, match="too long"):
            async with asyncio.timeout(3), upstream.ask("/v1", [], b"") as answer:
                await taken(answer)


async def test_an_answer_that_nobody_took_holds_up_no_other() -> None:
    text = b"x" * 20_000
    async with provided(saying(OK + b"Content-Length: 20000\r\n\r\n" + text)) as (provider, upstream):
        for _ in range(2):
            async with upstream.ask("/v1", [], b"") as answer:
                assert answer.status == 200
                async with asyncio.timeout(5):
                    while not answer._connection._complete:
                        await asyncio.sleep(0)
        async with upstream.ask("/v1", [], b"") as answer:
            assert await taken(answer) == text
    assert provider.connections == 3


@pytest.mark.acceptance("D13")
@pytest.mark.parametrize("status", [b"000", b"199 x", b"600 x", b"999 x"])
async def test_a_number_that_is_no_status_of_http_is_told_as_such(tmp_path: Path, status: bytes) -> None:
    said = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}" % status
    async with (
        provided(saying(said), 2.0) as (_, upstream),
        rigged(tmp_path, upstream=f"http://{upstream._name}", tuning=Tuning(read_seconds=2.0)) as rig,
    ):
        token, _ = await rig.token()
        assert kind(await rig.ask(token)) == (502, "api_error")
