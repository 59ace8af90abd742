"""Reading a request's body under limits of size, time and memory, whatever its headers claim."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from starlette.types import Receive

MEGABYTE = 1024 * 1024


class BodyRefused(Exception):
    """Answer with this status and close; the sentence is for the sender."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class Disconnected(Exception):
    """Nobody is there to be answered."""


@dataclass(frozen=True)
class BodyLimits:
    most_bytes: int = 25 * MEGABYTE
    """GitHub's own cap."""
    seconds: float = 10.0
    all_bytes: int = 128 * MEGABYTE
    """Of bodies being read at the same time: who sends has not proved yet to be GitHub. Past it the largest goes."""
    linger_seconds: float = 5.0


@dataclass(eq=False)
class _Reading:
    """One body on its way."""

    deadline: asyncio.Timeout
    size: int = 0
    evicted: bool = False

    def evict(self) -> None:
        self.evicted = True
        with contextlib.suppress(RuntimeError):  # its time is up already
            self.deadline.reschedule(asyncio.get_running_loop().time())


class BodyReader:
    """One for all requests of a route: it counts what they hold together."""

    def __init__(self, limits: BodyLimits) -> None:
        self._limits = limits
        self._readings: set[_Reading] = set()

    async def read(self, receive: Receive, declared: int | None) -> bytes | bytearray:
        """The whole body. A declared length over the cap is refused unread; a lying or absent one while reading."""
        if declared is not None and declared > self._limits.most_bytes:
            raise self._too_large()
        mine = _Reading(asyncio.timeout(self._limits.seconds))
        self._readings.add(mine)
        try:
            async with mine.deadline:
                return await self._read(receive, mine)
        except TimeoutError:
            if mine.evicted:
                raise _too_much() from None
            raise BodyRefused(408, "The body did not arrive in time.") from None
        finally:
            self._readings.discard(mine)

    async def linger(self, receive: Receive) -> None:
        """Drop what is still being sent, for a while: closing upon it would destroy our answer on its way."""
        with contextlib.suppress(TimeoutError, Disconnected):
            async with asyncio.timeout(self._limits.linger_seconds):
                more = True
                while more:
                    _, more = await _chunk(receive)

    async def _read(self, receive: Receive, mine: _Reading) -> bytes | bytearray:
        first, more = await _chunk(receive)
        self._hold(len(first), mine)
        if not more:
            return first
        body = bytearray(first)
        while more:
            chunk, more = await _chunk(receive)
            self._hold(len(chunk), mine)
            body += chunk
        return body

    def _hold(self, count: int, mine: _Reading) -> None:
        """Room is made by whoever holds most of it: strangers who fill it must not keep GitHub's small bodies out."""
        mine.size += count
        if mine.size > self._limits.most_bytes:
            raise self._too_large()
        while sum(one.size for one in self._readings if not one.evicted) > self._limits.all_bytes:
            largest = max((one for one in self._readings if not one.evicted), key=lambda one: one.size)
            if largest is mine:
                raise _too_much()
            largest.evict()

    def _too_large(self) -> BodyRefused:
        return BodyRefused(413, f"The body is larger than {self._limits.most_bytes // MEGABYTE} MB.")


def _too_much() -> BodyRefused:
    return BodyRefused(503, "Too much is being received at once.")


async def _chunk(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] != "http.request":
        raise Disconnected
    body: bytes = message.get("body", b"")
    return body, message.get("more_body", False)
