"""Trouble on order, for both planes: refused, late, lost and broken-off calls; and a record of every call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_CAP = 256 * 1024
BeforeIt = Literal["fail", "delay", "hold", "reset"]
AfterIt = Literal["fail_after", "lose"]
InIt = Literal["cut", "rst", "stall", "no_end", "garbage", "kill"]
IN_IT = ("cut", "rst", "stall", "no_end", "garbage", "kill")


@dataclass
class Call:
    """One request that came; `status` is None when it was cut before an answer."""

    method: str
    path: str
    sandbox: str = ""
    """From the header that names one, or from the path."""
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


@dataclass
class Fault:
    """What happens to calls that match `METHOD /path` as a glob (`*` also spans slashes), after `skip` of them.

    fail: answered with status, headers and body, without effect; fail_after: the same after the effect.
    delay: `seconds` later. hold: when `release` is set.
    reset: cut by RST before the effect. lose: FIN after it, unanswered.
    In the middle of an answer, once `after` pieces of it (a frame of a stream, a chunk of a file) have been given out:
    cut: FIN. rst: RST. stall: nothing more comes and the connection stays, until `release`.
    garbage: the next piece is no JSON. kill: the sandbox is killed.
    no_end: the event that tells the end of a command is left out.
    """

    match: str
    kind: BeforeIt | AfterIt | InIt
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = '{"code": 500, "message": "Internal error"}'
    seconds: float = 0.0
    after: int = 1
    times: int | None = 1
    """How many calls it strikes; None: all."""
    skip: int = 0
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


class Faults:
    """The list of them; the first that strikes a call is the one that happens."""

    def __init__(self) -> None:
        self.active: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        self.active.append(fault)
        return fault

    def clear(self) -> None:
        for fault in self.active:
            fault.release.set()
        self.active.clear()

    def for_call(self, call: Call) -> Fault | None:
        return next((fault for fault in self.active if fault.strikes(call)), None)


@dataclass(frozen=True)
class Means:
    """How a fault reaches the world."""

    cut: Callable[[Scope, bool], None]
    kill: Callable[[str], Awaitable[None]]


class FaultyApp:
    """The outermost ASGI layer of one server; both share the lists."""

    def __init__(self, app: ASGIApp, faults: Faults, calls: list[Call], means: Means) -> None:
        self._app = app
        self._faults = faults
        self._means = means
        self._calls = calls
        self.errors: list[Exception] = []
        """Mistakes of the stand-in itself, each answered with 500."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        call = Call(scope["method"], scope["path"], query=scope["query_string"].decode(), headers=headers)
        named = call.path.partition("/sandboxes/")[2].partition("/")[0]
        call.sandbox = headers.get("e2b-sandbox-id") or named
        self._calls.append(call)

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

        try:
            await self._run(call, (scope, listen, note))
        except (asyncio.CancelledError, ClientDisconnect):
            # the server stops and has dropped the connection, or the client has: there is nobody to answer
            return
        except Exception as error:
            self.errors.append(error)
            raise

    async def _run(self, call: Call, asgi: tuple[Scope, Receive, Send]) -> None:
        fault = self._faults.for_call(call)
        if fault is None:
            await self._app(*asgi)
            return
        call.fault = fault.kind
        fault.reached.set()
        if fault.kind in IN_IT:
            await Broken(fault, call, self._means, asgi).run(self._app)
        elif fault.kind in ("fail_after", "lose"):
            await self._app(asgi[0], asgi[1], nowhere)
            await (refuse(fault, asgi[2]) if fault.kind == "fail_after" else self._drop(asgi, hard=False))
        elif fault.kind == "fail":
            await refuse(fault, asgi[2])
        elif fault.kind == "reset":
            await self._drop(asgi, hard=True)
        else:
            await (asyncio.sleep(fault.seconds) if fault.kind == "delay" else fault.release.wait())
            await self._app(*asgi)

    async def _drop(self, asgi: tuple[Scope, Receive, Send], *, hard: bool) -> None:
        """Cut, then wait until the server has noticed, so that it adds no answer of its own."""
        self._means.cut(asgi[0], hard)
        while (await asgi[1]())["type"] != "http.disconnect":
            pass


class Broken:
    """An answer that goes wrong on its way."""

    def __init__(self, fault: Fault, call: Call, means: Means, asgi: tuple[Scope, Receive, Send]) -> None:
        self._fault = fault
        self._call = call
        self._means = means
        self._scope, self._receive, self._send = asgi
        self._given = 0
        self._over = False

    async def run(self, app: ASGIApp) -> None:
        await app(self._scope, self._receive, self._pass)

    async def _pass(self, message: Message) -> None:
        body = message.get("body", b"")
        if self._over and self._fault.kind in ("cut", "rst"):
            return
        if not body or self._given < self._fault.after or (self._over and self._fault.kind != "stall"):
            self._given += bool(body)
            await self._give(message)
            return
        await self._strike(message)

    async def _give(self, message: Message) -> None:
        if self._fault.kind == "no_end" and b'{"event":{"end"' in message.get("body", b""):
            return
        await self._send(message)

    async def _strike(self, message: Message) -> None:
        kind = self._fault.kind
        self._over = True
        if kind in ("cut", "rst"):
            # what was given out is to arrive before the connection breaks
            await asyncio.sleep(0.02)
            self._means.cut(self._scope, kind == "rst")
        elif kind == "stall":
            await self._fault.release.wait()
            await self._send(message)
        elif kind == "garbage":
            body = message["body"]
            await self._send({**message, "body": body[:5] + b"?" * (len(body) - 5)})
        else:
            if kind == "kill":
                await self._means.kill(self._call.sandbox)
            await self._give(message)


async def nowhere(_: Message) -> None:
    """Takes an answer instead of the client."""


async def refuse(fault: Fault, send: Send) -> None:
    body = fault.body.encode()
    headers = {"content-type": "application/json", "content-length": str(len(body))}
    headers |= {name.lower(): value for name, value in fault.headers.items()}
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": fault.status, "headers": raw})
    await send({"type": "http.response.body", "body": body, "more_body": False})
