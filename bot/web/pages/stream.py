"""Server-sent events to one browser: ends when the browser goes, stops reading, or may not see it any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bot.web.pages.frame import COMMON

SEND_SECONDS = 30.0
"""How long a browser may not take what is sent."""


class EventStream(Response):
    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        super().__init__(headers={**COMMON, "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        tasks = {asyncio.create_task(self._tell(send)), asyncio.create_task(_gone(receive))}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _tell(self, send: Send) -> None:
        async with aclosing(self._chunks) as chunks:
            async for chunk in chunks:
                async with asyncio.timeout(SEND_SECONDS):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
