"""Server-sent events to a browser, until it goes, stops reading, or loses access."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from bot.errors import TransientError
from bot.web.pages.frame import COMMON

LATER = b"retry: 30000\n\n"
SEND_SECONDS = 30.0  # the stream ends if a browser takes nothing for so long


class StreamLimit:
    """Counts the open streams of each person and of all."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._open: Counter[int] = Counter()

    def refusal(self, person: int) -> Response | None:
        if self._open.total() < self._most and self._open[person] < self._most_each:
            return None
        return PlainTextResponse("Too many pages are open.\n", 503, {**COMMON, "Retry-After": "30"})

    async def counted(self, person: int, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """Count the stream while it lasts. It ends if GitHub does not answer, and the browser comes back; also if
        others began since it was not refused."""
        if self.refusal(person) is not None:
            yield LATER
            return
        self._open[person] += 1
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk
        except TransientError:
            return
        finally:
            self._open[person] -= 1


class EventStream(Response):
    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        super().__init__(headers={**COMMON, "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def until_gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                continue

        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        tasks = {asyncio.create_task(self._send_all(send)), asyncio.create_task(until_gone())}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send_all(self, send: Send) -> None:
        async with aclosing(self._chunks) as chunks:
            async for chunk in chunks:
                async with asyncio.timeout(SEND_SECONDS):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def event(name: str, data: object, seq: int | None = None) -> bytes:
    mark = "" if seq is None else f"id: {seq}\n"
    return f"event: {name}\n{mark}data: {json.dumps(data)}\n\n".encode()


async def is_set_within(seconds: float, event: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
