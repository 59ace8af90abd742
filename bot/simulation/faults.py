"""Trouble on demand for any stand-in: refuses, delays, holds or cuts matching calls, and records every call."""

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
"""Drops the connection under a request; True: with RST."""
Asgi: TypeAlias = tuple[Scope, Receive, Send]
AFTER_IT = ("fail_after", "lose", "truncate")


@dataclass
class Call:
    """A request; without a `status`, the connection was cut."""

    method: str
    path: str
    status: int | None = None
    fault: str | None = None
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    """The body up to a cap, in which tests look for what must never be sent."""
    size: int = 0
    """The whole body's length in bytes."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


C = TypeVar("C", bound=Call)


@dataclass
class Fault:
    """A fault of calls that match `METHOD /path` as a glob (`*` also matches slashes), after the first `skip` of them.

    fail: answer with status, headers and body, without effect. fail_after: the same after the effect.
    delay: `seconds` later. hold: until `release` is set. reset: cut before the effect. lose: cut after it, without an
    answer. truncate: effect, half of the answer, cut.
    """

    match: str
    kind: str
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | bytes | None = None
    seconds: float = 0.0
    times: int | None = 1
    """How many calls it hits; None: all."""
    skip: int = 0
    on_hit: Callable[[Call], None] | None = None
    """Called when it hits; for the kinds with an effect, after the effect."""
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
    """The active faults; the first that hits a call happens."""

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
        """The stand-in's own mistakes, each answered with 500."""
        self._faults = faults

    @abstractmethod
    def call_of(self, scope: Scope, headers: dict[str, str]) -> C:
        """Return the record of a call."""

    def answered(self, call: C, scope: Scope) -> None:
        """Note a call after its end, however that came."""

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
            # the server stops, or the client is gone
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
        """Cut, then wait until the server has noticed, so that it adds no answer."""
        self.cut(scope, hard)
        while (await receive())["type"] != "http.disconnect":
            pass


class Sink:
    """Receives an answer instead of the client."""

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
    """Wrap both so that they note the request and the answer."""

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
