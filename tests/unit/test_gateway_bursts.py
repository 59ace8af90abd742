"""Bursts of a stream: nothing is lost or reordered, what broke it comes last, and a sender that is too fast waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bot.web.gateway.bursts import MOST_BYTES, Bursts


async def everything(bursts: Bursts) -> list[bytes]:
    found = []
    while burst := await bursts.next():
        found.append(burst)
    return found


async def test_what_has_come_is_given_out_at_once_and_in_order() -> None:
    more = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"a", b"", b"b", b"c"):
            yield piece
        await more.wait()
        yield b"d"

    async with Bursts(pieces()) as bursts:
        assert await bursts.next() == b"abc"
        waiting = asyncio.create_task(bursts.next())
        more.set()
        assert await waiting == b"d"
        assert await bursts.next() == b""
        assert await bursts.next() == b""


async def test_an_empty_stream_ends() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in ():
            yield piece

    async with Bursts(pieces()) as bursts:
        assert await everything(bursts) == []


async def test_what_broke_the_stream_is_raised_after_its_pieces() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a"
        raise ConnectionError("cut")

    async with Bursts(pieces()) as bursts:
        assert await bursts.next() == b"a"
        for _ in range(2):
            with pytest.raises(ConnectionError):
                await bursts.next()


async def test_a_sender_that_is_too_fast_waits_and_nothing_is_lost() -> None:
    piece, sent = b"x" * 1000, 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal sent
        for sent in range(1, 101):  # noqa: B007 - how far it got
            yield piece

    async with Bursts(pieces()) as bursts:
        first = await bursts.next()
        assert len(first) < MOST_BYTES + len(piece)
        assert sent < 100
        assert first + b"".join(await everything(bursts)) == piece * 100


async def test_a_reader_that_leaves_ends_the_stream() -> None:
    closed = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        try:
            yield b"a"
            await asyncio.Event().wait()
        finally:
            closed.set()

    async with Bursts(pieces()) as bursts:
        assert await bursts.next() == b"a"
    assert closed.is_set()
