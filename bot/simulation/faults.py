"""Trouble on order, for any stand-in: refuses, delays, holds or cuts the calls that match, and records every call."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Generic, TypeAlias, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_CAP = 256 * 1024
Cut = Callable[[Scope, bool], None]
"""Drops the connection under a request; True: hard, by RST."""
Asgi: TypeAlias = tuple[Scope, Receive, Send]
AFTER_IT = ("fail_after", "lose", "truncate")


@dataclass
class Call:
    """One request that came; `status` is None when the connection was cut."""

    method: str
    path: str
    status: int | None = None
    fault: str | None = None
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    """What was sent, up to a cap: for finding what must never be sent."""
    size: int = 0
    """Of all that was sent, in bytes."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


C = TypeVar("C", bound=Call)


@dataclass
class Fault:
    """What happens to calls that match `METHOD /path` as a glob (`*` also spans slashes), after `skip` of them.

    fail: answered with status, headers and body, without effect; fail_after: the same after the effect.
    delay: `seconds` later. hold: when `release` is set. reset: cut before the effect. lose: cut after it, unanswered.
    truncate: effect, half of the answer, cut.
    """

    match: str
    kind: str
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | bytes | None = None
    seconds: float = 0.0
    times: int | None = 1
    """How many calls it strikes; None: all."""
    skip: int = 0
    on_hit: Callable[[Call], None] | None = None
    """Called when it strikes; for the kinds with an effect, after the effect."""
    hits: int = 0
    seen: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    release: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def strikes(self, call: Call) -> bool:
        if not fnmatchcase(str(call), self.match):
            return False
        self.seen += 1
        if self.seen <= self.skip or (self.times is not None and self.hits >= self.times):
            return False
        self.hits += 1
        return True


F = TypeVar("F", bound=Fault)


class Faults(Generic[F]):
    """The list of them; the first that strikes a call is the one that happens."""

    def __init__(self) -> None:
        self.active: list[F] = []

    def add(self, fault: F) -> F:
        self.active.append(fault)
        return fault

    def clear(self) -> None:
        for fault in self.active:
            fault.release.set()
        self.active.clear()

    def for_call(self, call: Call) -> F | None:
        return next((fault for fault in self.active if fault.strikes(call)), None)


class FaultyApp(ABC, Generic[C, F]):
    """The outermost ASGI layer of a stand-in."""

    def __init__(self, app: ASGIApp, faults: Faults[F], cut: Cut, calls: list[C]) -> None:
        self.app = app
        self.calls = calls
        self.cut = cut
        self.errors: list[Exception] = []
        """Mistakes of the stand-in itself, each answered with 500."""
        self._faults = faults

    @abstractmethod
    def call_of(self, scope: Scope, headers: dict[str, str]) -> C:
        """As the stand-in records it."""

    def answered(self, call: C, scope: Scope) -> None:
        """Whatever became of it."""

    async def strike(self, fault: F, call: C, asgi: Asgi) -> None:
        scope, receive, send = asgi
        if fault.kind in AFTER_IT:
            sink = Sink()
            await self.app(scope, receive, sink)
            hit(fault, call)
            await self._end(fault, sink, asgi)
            return
        hit(fault, call)
        if fault.kind == "fail":
            await refuse(fault, send)
        elif fault.kind == "reset":
            await self._drop(scope, receive, hard=True)
        else:
            await (asyncio.sleep(fault.seconds) if fault.kind == "delay" else fault.release.wait())
            await self.app(scope, receive, send)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        call = self.call_of(scope, headers)
        self.calls.append(call)
        try:
            await self._run(call, (scope, *_noted(call, receive, send)))
        except (asyncio.CancelledError, ClientDisconnect):
            # the server stops, or a client that was held has gone: there is nobody to answer
            return
        except Exception as error:
            self.errors.append(error)
            raise
        finally:
            self.answered(call, scope)

    async def _run(self, call: C, asgi: Asgi) -> None:
        fault = self._faults.for_call(call)
        if fault is None:
            await self.app(*asgi)
            return
        call.fault = fault.kind
        fault.reached.set()
        await self.strike(fault, call, asgi)

    async def _end(self, fault: F, sink: Sink, asgi: Asgi) -> None:
        scope, receive, send = asgi
        if fault.kind == "fail_after":
            await refuse(fault, send)
            return
        if fault.kind == "truncate":
            await sink.half(send)
        await self._drop(scope, receive, hard=False)

    async def _drop(self, scope: Scope, receive: Receive, *, hard: bool) -> None:
        """Cut, then wait until the server has noticed, so that it adds no answer of its own."""
        self.cut(scope, hard)
        while (await receive())["type"] != "http.disconnect":
            pass


class Sink:
    """Takes an answer instead of the client."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def __call__(self, message: Message) -> None:
        self.messages.append(message)

    async def half(self, send: Send) -> None:
        start, *bodies = self.messages
        whole = b"".join(each.get("body", b"") for each in bodies)
        await send(start)
        await send({"type": "http.response.body", "body": whole[: len(whole) // 2], "more_body": True})


def hit(fault: Fault, call: Call) -> None:
    if fault.on_hit:
        fault.on_hit(call)


async def refuse(fault: Fault, send: Send) -> None:
    text = json.dumps({"message": "Server Error"}) if fault.body is None else fault.body
    body = text.encode() if isinstance(text, str) else text
    headers = {"content-type": "application/json; charset=utf-8", "content-length": str(len(body))}
    headers |= {name.lower(): value for name, value in fault.headers.items()}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": fault.status, "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _noted(call: Call, receive: Receive, send: Send) -> tuple[Receive, Send]:
    """The same two, which note what comes and what is answered."""

    async def listen() -> Message:
        message = await receive()
        part = message.get("body", b"")
        call.size += len(part)
        if len(call.body) < BODY_CAP:
            call.body += part
        return message

    async def note(message: Message) -> None:
        if message["type"] == "http.response.start":
            call.status = message["status"]
        await send(message)

    return listen, note
