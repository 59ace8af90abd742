"""Reads a command's stream from inside: its answer as soon as that is whole, its silence, and its end."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sandbox.errors import SandboxError

if TYPE_CHECKING:
    from e2b import AsyncCommandHandle

SILENCE_SECONDS = 7.0  # the inside sends something every two seconds
ANSWER_BYTES = 16 << 20
LETTING_GO_SECONDS = 5.0


class Heard:
    """A command's words so far, and when the last came."""

    def __init__(self) -> None:
        self._line = ""
        self._size = 0
        self._parts: list[str] = []
        self._at = time.monotonic()
        self._errors = ""
        self._answered = asyncio.Event()
        self.answer = ""

    def out(self, text: str) -> None:
        self._at = time.monotonic()
        self._size += len(text)
        if self._size > ANSWER_BYTES or self.answer:
            return
        self._parts.append(text)
        if text.endswith("\n"):
            lines = "".join(self._parts).split("\n")
            self.answer = next((line[1:] for line in lines if line.startswith("=")), "")
            if self.answer:
                self._answered.set()

    def err(self, text: str) -> None:
        self._errors = (self._errors + text)[-1000:]

    async def answer_or(self, over: asyncio.Future[Any]) -> None:
        """Wait until the answer is whole, without its end event. Silence, or an end without an answer, is an error."""
        answered = asyncio.ensure_future(self._answered.wait())
        try:
            while not self.answer:
                await asyncio.wait((answered, over), timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
                if not self.answer and over.done():
                    await self._ended(over)
                if not self.answer and time.monotonic() - self._at > SILENCE_SECONDS:
                    raise TimeoutError("the line went silent")
        finally:
            answered.cancel()

    async def _ended(self, over: asyncio.Future[Any]) -> None:
        from e2b import CommandExitException

        try:
            await over
        except CommandExitException as error:
            if error.exit_code > 0:
                raise SandboxError(f"our scripts in the sandbox failed: {self._errors.strip()[-500:]}") from None
            raise
        raise ConnectionError("a command ended without an answer")


def heed(over: asyncio.Future[Any]) -> None:
    """Take the result, which matters no more once there is an answer, so that asyncio does not complain."""
    if not over.cancelled():
        over.exception()


async def let_go(handle: AsyncCommandHandle[Any], over: asyncio.Future[Any]) -> None:
    """Wait for the command's end, which is near; drop its stream if that stays open."""
    await asyncio.wait((over,), timeout=LETTING_GO_SECONDS)
    if not over.done():
        over.cancel()
        await asyncio.gather(over, return_exceptions=True)
        with suppress(Exception):
            await handle.disconnect()


async def end(handle: AsyncCommandHandle[Any]) -> None:
    with suppress(Exception):
        async with asyncio.timeout(LETTING_GO_SECONDS):
            if handle.exit_code is None:
                await handle.kill()
    with suppress(Exception):
        await handle.disconnect()
