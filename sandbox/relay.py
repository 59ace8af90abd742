"""Carries bytes between two connections on the host's side."""

from __future__ import annotations

import asyncio

BLOCK = 1 << 16

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def relay(near: Connection, far: Connection) -> None:
    """Both ways, until both have ended; the end of one direction is passed on while the other lives."""
    try:
        await asyncio.gather(_copy(near[0], far[1]), _copy(far[0], near[1]))
    finally:
        near[1].close()
        far[1].close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(BLOCK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
