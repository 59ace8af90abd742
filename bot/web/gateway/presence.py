"""Ends the work on a request as soon as its client goes away or its token is revoked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from starlette.types import Message, Receive, Send

from bot.web.gateway import errors
from bot.web.gateway.body import until_gone

ENDED = "The token of this turn was ended."


class Presence:
    """Use `send` for the answer, so that it is known how far that got."""

    def __init__(
        self, receive: Receive, send: Send, is_live: Callable[[], Awaitable[bool]], check_seconds: float
    ) -> None:
        self._receive = receive
        self._send = send
        self._is_live = is_live
        self._check_seconds = check_seconds
        self._started = False
        self._finished = False

    async def send(self, message: Message) -> None:
        self._started = True
        self._finished = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def during(self, work: Coroutine[Any, Any, None]) -> None:
        working = asyncio.create_task(work)
        gone = asyncio.create_task(until_gone(self._receive))
        ended = asyncio.create_task(self._until_ended())
        try:
            await asyncio.wait({working, gone, ended}, return_when=asyncio.FIRST_COMPLETED)
            cut = ended.done() and not working.done() and not gone.done()
        finally:
            for task in (working, gone, ended):
                task.cancel()
            await asyncio.wait({working, gone, ended})
        if not working.cancelled():
            working.result()
        elif cut and not self._finished:
            await self._say_ended()

    async def _until_ended(self) -> None:
        while True:
            await asyncio.sleep(self._check_seconds)
            if not await self._is_live():
                return

    async def _say_ended(self) -> None:
        kind = errors.KINDS[401]
        if self._started:
            await self._send({"type": "http.response.body", "body": errors.error_event(kind, ENDED)})
            return
        body = errors.error_response(401, ENDED, errors.FINAL)
        await self._send({"type": "http.response.start", "status": 401, "headers": body.raw_headers})
        await self._send({"type": "http.response.body", "body": bytes(body.body)})
