"""Feeds a process's stdin, and reads its output under a cap."""

from __future__ import annotations

import asyncio
from contextlib import suppress

OUTPUT_CAP = 1 << 20
BLOCK = 1 << 16


async def feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


class Capped:
    """Keeps the first bytes of a stream and drops the rest, so that the writer never waits."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.truncated = False

    async def take(self, stream: asyncio.StreamReader | None) -> None:
        assert stream is not None
        while block := await stream.read(BLOCK):
            room = OUTPUT_CAP - len(self.data)
            self.data += block[:room]
            self.truncated = self.truncated or len(block) > room
