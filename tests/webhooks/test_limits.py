"""Requests too large, too slow or too many: they are refused, and nobody else is kept waiting for them."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.web.bodies import BodyLimits
from bot.web.server import HeadLimits
from tests.world.webhooks import BODY, MEGABYTE, Edge, running, signed


@pytest.mark.acceptance("A07")
async def test_the_cap_holds_for_declared_and_for_chunked_bodies(edge: Edge) -> None:
    whole = b'{"action":"' + b"x" * (25 * MEGABYTE - 13) + b'"}'
    assert len(whole) == 25 * MEGABYTE
    assert (await edge.post(whole, signed(whole, event="push"))).status_code == 202
    assert (await edge.post(whole + b" ", signed(whole + b" "))).status_code == 413

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1024):
            yield b"x" * MEGABYTE

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = await edge.client.post("/webhook", content=endless(), headers=signed(b"x"))
    assert answer.status_code == 413
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 * 1024
    assert [row.event for row in await edge.rows()] == ["push"]


@pytest.mark.acceptance("A07")
async def test_a_lying_length(edge: Edge) -> None:
    head = "".join(f"{name}: {value}\r\n" for name, value in signed(BODY).items())
    for length, body in ((len(BODY) - 10, BODY), (27 * MEGABYTE, BODY)):
        reader, wire = await edge.connect()
        wire.write(f"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{head}\r\n".encode() + body)
        line = await asyncio.wait_for(reader.readline(), 10)
        assert line.split()[1] in (b"400", b"401", b"413")
        wire.close()
    assert await edge.rows() == []


async def test_what_all_bodies_hold_together_is_bounded_and_the_largest_makes_room(tmp_path: Path) -> None:
    """A stranger, whose signature is looked at last, fills what there is but for a byte: GitHub still gets through."""
    limits = BodyLimits(all_bytes=3 * MEGABYTE, linger_seconds=0.1)
    big = b'{"a":"' + b"x" * (3 * MEGABYTE - 9) + b'"}'
    async with running(tmp_path, limits=limits) as edge:
        head = "".join(f"{name}: {value}\r\n" for name, value in signed(big, secret="not ours").items())
        reader, held = await edge.connect()
        held.write(f"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: {len(big)}\r\n{head}\r\n".encode() + big[:-1])
        await held.drain()
        refused = asyncio.create_task(asyncio.wait_for(reader.read(), 10))
        while not refused.done():  # until all of the large one has arrived, there is room
            assert (await edge.post(BODY, signed(BODY, guid="small"))).status_code == 202
        answer = refused.result()
        assert answer.startswith(b"HTTP/1.1 503 ") and b"retry-after" in answer
        held.close()
        await held.wait_closed()
    async with running(tmp_path, limits=limits) as edge:
        assert (await edge.post(big, signed(big, guid="third"))).status_code == 202


@pytest.mark.acceptance("A08")
async def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    limits = BodyLimits(seconds=0.2, linger_seconds=0.1)
    async with running(tmp_path, limits=limits) as edge:
        reader, wire = await edge.connect()
        head = "".join(f"{name}: {value}\r\n" for name, value in signed(BODY).items())
        wire.write(f"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n{head}\r\nx".encode())
        answer = await asyncio.wait_for(reader.read(), 10)
        assert answer.startswith(b"HTTP/1.1 408 ")
        wire.close()


@pytest.mark.acceptance("A08")
async def test_heads_that_do_not_come_are_closed_and_do_not_hinder_others(tmp_path: Path) -> None:
    async with running(tmp_path, head_limits=HeadLimits(seconds=0.5)) as edge:
        idle = [await edge.connect() for _ in range(250)]
        slow = [await edge.connect() for _ in range(50)]
        for _, wire in slow:
            wire.write(b"POST /webhook HTTP/1.1\r\nX-Slow")
        started = time.monotonic()
        assert (await edge.post(BODY, signed(BODY))).status_code == 202
        assert time.monotonic() - started < 1
        async with asyncio.timeout(10):
            for reader, wire in idle + slow:
                await _ended(reader)
                wire.close()
        assert (await edge.post(BODY, signed(BODY))).status_code == 202


@pytest.mark.acceptance("A08")
async def test_too_many_that_wait_make_room(tmp_path: Path) -> None:
    async with running(tmp_path, head_limits=HeadLimits(waiting=3, patience=0)) as edge:
        first, wire = await edge.connect()
        others = [await edge.connect() for _ in range(3)]
        await asyncio.wait_for(_ended(first), 10)
        assert (await edge.post(BODY, signed(BODY))).status_code == 202
        for _, other in [*others, (first, wire)]:
            other.close()


async def test_a_kept_connection_has_the_same_deadline(tmp_path: Path) -> None:
    async with running(tmp_path, head_limits=HeadLimits(seconds=0.3)) as edge:
        reader, wire = await edge.connect()
        wire.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await asyncio.wait_for(reader.readline(), 10)).split()[1] == b"200"
        wire.write(b"GET /healthz HT")
        await asyncio.wait_for(_ended(reader), 10)
        wire.close()


@pytest.mark.acceptance("A09")
@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 10_000 + b"\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 1_000_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 1_000_000,
        b"GET /" + b"a" * 65_536 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /" + b"a" * 200_000,
        b"\x16\x03\x01\x02\x00" + b"\x00" * 500,
    ],
)
async def test_oversized_heads_are_refused(edge: Edge, head: bytes) -> None:
    reader, wire = await edge.connect()
    wire.write(head)
    try:
        answer = await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        answer = b""
    assert answer == b"" or answer.split()[1].startswith(b"4")
    wire.close()
    assert (await edge.client.get("/healthz")).status_code == 200


async def _ended(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(1000):
            pass
    except ConnectionError:
        return


def test_limits_can_be_narrowed() -> None:
    assert replace(BodyLimits(), seconds=1).most_bytes == 25 * MEGABYTE
