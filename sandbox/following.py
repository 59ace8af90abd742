"""Follows a run's output by byte offset, each whole line once; delivers messages to it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import posixpath
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass

from sandbox.agents.base import Agent
from sandbox.errors import EnvironmentBusy, NotThere
from sandbox.primitives import Chunk, EnvironmentPrimitives, RunState, RunStatus

LINE_CAP = 32 << 20


@dataclass(frozen=True)
class RawLine:
    data: bytes | None  # None: longer than the cap, left out
    end: int  # offset of the first byte behind the line and its newline


class LineCutter:
    """Cuts a stream into lines. It joins the pieces of a line once, because `rest + chunk` is quadratic."""

    def __init__(self, offset: int, cap: int | None = None) -> None:
        self._cap = LINE_CAP if cap is None else cap
        self._pieces: list[bytes] = []
        self._held = 0
        self.offset = offset  # of the next byte to feed

    def feed(self, data: bytes) -> list[RawLine]:
        found: list[RawLine] = []
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._hold(piece)
            self.offset += 1
            found.append(self._take())
        self._hold(rest)
        return found

    def finish(self) -> list[RawLine]:
        """Return the last line if it has no newline."""
        return [self._take()] if self._held else []

    def _hold(self, piece: bytes) -> None:
        self.offset += len(piece)
        self._held += len(piece)
        if self._held <= self._cap:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def _take(self) -> RawLine:
        data = b"".join(self._pieces) if self._held <= self._cap else None
        self._pieces, self._held = [], 0
        return RawLine(data, self.offset)


READ_SIZE = 256 << 10
SLIM_CAP = 16 << 10
MOST_LINES = 1000
"""Lines in one chunk; without this cap, a file of line ends would occupy its readers for long."""
LARGE = 32 << 10  # lines with more bytes together are read in a thread
SETTLE_SECONDS = 0.05
SETTLE_TRIES = 40


class Follower:
    """One reader of one run. The status decides when the run is over, never the stream itself."""

    def __init__(
        self, primitives: EnvironmentPrimitives, agent: Agent, status: Callable[[], Awaitable[RunStatus]], path: str
    ) -> None:
        self._primitives = primitives
        self._agent = agent
        self._status = status
        self._path = path
        self._settling = 0
        self._final_mark = agent.final_type.encode()

    async def chunks(self, offset: int) -> AsyncGenerator[Chunk, None]:
        """Yield chunks until the run has ended and every byte was read."""
        cutter = LineCutter(offset)
        async with aclosing(self._wake_ups(offset)) as wake_ups:
            async for _ in wake_ups:
                over = (await self._status()).over  # asked first, so that we read everything written until then
                async for lines in self._read(cutter):
                    yield await self._slimmed(lines)
                if over:
                    break
        if last := cutter.finish():
            yield await self._slimmed(last)

    async def _wake_ups(self, offset: int) -> AsyncGenerator[None, None]:
        """Yield whenever the file has grown, and often for a moment after a final line, because the end is near."""
        yield None
        # Close the watch at once, not when it is garbage-collected: it may hold a process or a descriptor.
        async with aclosing(self._primitives.watch(self._path, offset)) as sizes:
            async for _ in sizes:
                yield None
                while self._settling:
                    self._settling -= 1
                    await asyncio.sleep(SETTLE_SECONDS)
                    yield None

    async def _read(self, cutter: LineCutter) -> AsyncIterator[list[RawLine]]:
        while True:
            try:
                data = await self._primitives.read(self._path, offset=cutter.offset, limit=READ_SIZE)
            except NotThere:
                return  # not yet written, or never
            if not data:
                return
            lines = cutter.feed(data)
            for start in range(0, len(lines), MOST_LINES):
                yield lines[start : start + MOST_LINES]
            if len(data) < READ_SIZE:
                return  # the end for now; another look would cost a round trip

    async def _slimmed(self, lines: list[RawLine]) -> Chunk:
        """Slim long lines in a thread: a single line may have 32 MB."""
        size = sum(len(line.data or b"") for line in lines)
        return await asyncio.to_thread(self._chunk, lines) if size > LARGE else self._chunk(lines)

    def _chunk(self, lines: Iterable[RawLine]) -> Chunk:
        slimmed: list[str] = []
        end = 0
        for line in lines:
            end = line.end
            slimmed.append("" if line.data is None else self._agent.slim(line.data, SLIM_CAP))
            if line.data is not None and self._final_mark in line.data[:4096] + line.data[-4096:]:
                self._settling = SETTLE_TRIES
        return Chunk(tuple(slimmed), end, sum(not line for line in slimmed))


WAIT_SECONDS = 15.0
FIRST_POLL, LAST_POLL = 0.02, 0.5
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,80}")


class Mailbox:
    """Delivers messages. The runner alone decides: it acknowledges each that stdin took, or marks stdin as closed."""

    def __init__(
        self, primitives: EnvironmentPrimitives, folder: str, status: Callable[[], Awaitable[RunStatus]]
    ) -> None:
        self._primitives = primitives
        self._folder = folder
        self._status = status

    @staticmethod
    def file(message_id: str, line: bytes, *, order: int, quiet: bool = False) -> tuple[str, bytes]:
        """Return name and content of a message's file; the runner takes files in the order of their names. After a
        `quiet` message, the agent writes no final line of its own."""
        known_as = _known_as(message_id)
        content = json.dumps({"id": known_as, "line": line.decode("utf-8", "replace"), "quiet": quiet}).encode()
        return f"{order:020d}-{known_as}.json", content

    async def deliver(self, message_id: str, line: bytes, *, quiet: bool = False) -> bool:
        """Deliver a message; a repeated call with the same id delivers nothing more."""
        if (known := await self._known(message_id)) is not None:
            return known
        name, content = self.file(message_id, line, order=time.time_ns(), quiet=quiet)
        await self._primitives.write(posixpath.join(self._folder, "inbox", name), content)
        deadline, pause = time.monotonic() + WAIT_SECONDS, FIRST_POLL
        while (known := await self._known(message_id)) is None:
            if time.monotonic() > deadline:
                raise EnvironmentBusy("The running agent's stdin did not take the message in time.")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LAST_POLL)
        return known

    async def _known(self, message_id: str) -> bool | None:
        """Return None while it is open. Look at the end first: the second look then sees any delivery before it."""
        closed = await self._exists("closed") or (await self._status()).state is not RunState.RUNNING
        if await self._exists(posixpath.join("delivered", _known_as(message_id))):
            return True
        return False if closed else None

    async def _exists(self, name: str) -> bool:
        return await self._primitives.stat(posixpath.join(self._folder, name)) is not None


def _known_as(message_id: str) -> str:
    """Make a safe file name from any id."""
    return message_id if _PLAIN.fullmatch(message_id) else hashlib.sha256(message_id.encode()).hexdigest()[:32]
