"""Connect's wire form with the JSON codec: envelopes, errors, and a stream that ends by what happens first."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.e2b_stand_in.fan import Reader
from tests.e2b_stand_in.link import GuestError

END = 2
STATUS = {
    "invalid_argument": 400,
    "unauthenticated": 401,
    "not_found": 404,
    "already_exists": 409,
    "failed_precondition": 400,
    "unimplemented": 501,
    "internal": 500,
    "unknown": 500,
}
Unary = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


def frame(payload: dict[str, Any], *, flags: int = 0) -> bytes:
    data = json.dumps(payload, separators=(",", ":")).encode()
    return struct.pack("!BI", flags, len(data)) + data


async def frames(request: Request) -> AsyncIterator[dict[str, Any]]:
    """The messages that a client streams, as they come."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        while len(data) >= 5 and len(data) >= 5 + (size := int.from_bytes(data[1:5])):
            yield json.loads(data[5 : 5 + size])
            data = data[5 + size :]


async def one_frame(request: Request) -> dict[str, Any]:
    async for message in frames(request):
        return message
    raise GuestError("invalid_argument", "a stream without a message")


async def unary(request: Request, work: Unary) -> Response:
    try:
        body = json.loads(await request.body() or b"{}")
        return Response(json.dumps(await work(body)), media_type="application/json")
    except ValueError as error:
        return failed(GuestError("invalid_argument", f"unmarshal message: {error}"))
    except GuestError as error:
        return failed(error)


def failed(error: GuestError) -> Response:
    body = json.dumps({"code": error.code, "message": str(error)})
    return Response(body, status_code=STATUS.get(error.code, 500), media_type="application/json")


class Stream:
    """One answer of the server's streaming kind."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self._open = False
        self.gone = False
        """The client has left."""

    async def event(self, event: dict[str, Any]) -> None:
        await self._write(frame(event))

    async def end(self, error: GuestError | None = None) -> None:
        payload = {"error": {"code": error.code, "message": str(error)}} if error else {}
        await self._write(frame(payload, flags=END))
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True

    async def _write(self, data: bytes) -> None:
        if not self._open:
            self._open = True
            headers = [(b"content-type", b"application/connect+json")]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": data, "more_body": True})


async def pump(stream: Stream, reader: Reader, wrap: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Gives every event to the client until the last one."""
    while (event := await reader.next()) is not None:
        await stream.event(wrap(event))
    await stream.end()


async def first(*works: Awaitable[Any]) -> int:
    """The number of the one that was done first; the others are cancelled, and its error is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        done = next(number for number, task in enumerate(tasks) if task.done())
        tasks[done].result()
        return done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
