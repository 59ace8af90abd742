"""Sends one scripted answer, in pieces or whole, with the faults that the script wants."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bot.simulation.anthropic import wire
from bot.simulation.anthropic.gates import Gates
from bot.simulation.anthropic.script import Cut

EventPair = tuple[str, dict[str, object]]


@dataclass(frozen=True)
class Plan:
    """One answer as it was decided before its first byte."""

    message: wire.Message
    request_id: str
    streams: bool
    waits: tuple[str, ...] = ()
    first_token_seconds: float = 0.0
    between_seconds: float = 0.0
    cut: Cut | None = None
    hold: str | None = None
    hold_at: str = "content_block_delta"
    """The answer is held after the first event of this name."""


class ScriptedAnswer(Response):
    """Sends a plan, and tells the server if the client leaves before the end."""

    def __init__(self, plan: Plan, gates: Gates, on_gone: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self._plan = plan
        self._gates = gates
        self._on_gone = on_gone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        produce = asyncio.create_task(self._produce(send))
        gone = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait({produce, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not produce.done():
                await self._on_gone()
        finally:
            for task in (produce, gone):
                task.cancel()
            await asyncio.gather(produce, gone, return_exceptions=True)

    async def _produce(self, send: Send) -> None:
        for name in self._plan.waits:
            await self._gates.pass_through(name)
        await asyncio.sleep(self._plan.first_token_seconds)
        kind = b"text/event-stream; charset=utf-8" if self._plan.streams else b"application/json"
        headers = [(b"content-type", kind), (b"cache-control", b"no-cache")]
        headers.append((b"request-id", self._plan.request_id.encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if self._plan.streams:
            await self._stream(send)
        elif self._plan.cut is None:
            await send({"type": "http.response.body", "body": json.dumps(self._plan.message.whole()).encode()})

    async def _stream(self, send: Send) -> None:
        met = 0
        for name, data in self._events():
            await send({"type": "http.response.body", "body": wire.event_bytes(name, data), "more_body": True})
            await asyncio.sleep(self._plan.between_seconds)
            met += name == self._plan.hold_at
            if self._plan.hold and name == self._plan.hold_at and met == 1:
                await self._gates.pass_through(self._plan.hold)
        if self._plan.cut is None or self._plan.cut.error:
            await send({"type": "http.response.body", "body": b""})
        # otherwise the response never ends, and the server cuts the connection

    def _events(self) -> Iterator[EventPair]:
        events = list(self._plan.message.events())
        if self._plan.cut is None:
            return iter(events)
        kept = events[: max(3, len(events) // 2)]
        if self._plan.cut.error:
            kept.append(("error", wire.error_body(self._plan.cut.error, "Overloaded", self._plan.request_id)))
        return iter(kept)


def with_preludes(plan: Plan, *, waits: list[str], slow: tuple[float, float], cut: Cut | None) -> Plan:
    first, between = slow
    return replace(plan, waits=tuple(waits), first_token_seconds=first, between_seconds=between, cut=cut)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
