"""Trouble that can be ordered from the stand-in for E2B, on both planes, also in the middle of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from starlette.types import ASGIApp, Message, Scope

from bot.simulation import faults
from bot.simulation.faults import Asgi

Around = Literal["fail", "fail_after", "delay", "hold", "reset", "lose"]
InIt = Literal["cut", "rst", "stall", "no_end", "garbage", "kill"]
IN_IT = ("cut", "rst", "stall", "no_end", "garbage", "kill")


@dataclass
class Call(faults.Call):
    sandbox: str = ""
    """From the header that names one, or from the path."""


@dataclass
class Fault(faults.Fault):
    """Beside what may happen to any call, in the middle of an answer, once `after` pieces of it (a frame of a stream,
    a chunk of a file) have been given out:
    cut: FIN. rst: RST. stall: nothing more comes and the connection stays, until `release`.
    garbage: the next piece is no JSON. kill: the sandbox is killed.
    no_end: the event that tells the end of a command is left out.
    """

    kind: Around | InIt
    body: str | bytes | None = '{"code": 500, "message": "Internal error"}'
    after: int = 1


Faults: TypeAlias = faults.Faults[Fault]


@dataclass(frozen=True)
class Means:
    """How a fault reaches the world."""

    cut: faults.Cut
    kill: Callable[[str], Awaitable[None]]


class FaultyApp(faults.FaultyApp[Call, Fault]):
    """Of one server; both share the lists."""

    def __init__(self, app: ASGIApp, faults: Faults, calls: list[Call], means: Means) -> None:
        super().__init__(app, faults, means.cut, calls)
        self._means = means

    def call_of(self, scope: Scope, headers: dict[str, str]) -> Call:
        part = scope["path"].partition("/sandboxes/")[2].partition("/")[0]
        query, sandbox = scope["query_string"].decode(), headers.get("e2b-sandbox-id") or part
        return Call(scope["method"], scope["path"], query=query, headers=headers, sandbox=sandbox)

    async def strike(self, fault: Fault, call: Call, asgi: Asgi) -> None:
        if fault.kind in IN_IT:
            await Broken(fault, call, self._means, asgi).run(self.app)
        else:
            await super().strike(fault, call, asgi)


class Broken:
    """An answer that goes wrong on its way."""

    def __init__(self, fault: Fault, call: Call, means: Means, asgi: Asgi) -> None:
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
