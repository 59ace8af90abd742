"""What is said when descriptors, memory or time are short: come back soon, in the form that each caller understands."""

from __future__ import annotations

import errno
import os
import resource
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.web.gateway import refusals

RESERVE = 256
"""Descriptors that connections leave to the work itself: files, pipes, the store, the provider."""
WATCHED = ("/healthz", "/readyz", "/metrics")
_STARVED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)
_GATEWAYS = ("/gateway/", "/anthropic/", "/v1/")


@dataclass(frozen=True)
class OverloadAnswer:
    """A 503 as it goes out."""

    retry_after: int
    body: bytes

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(self.body)).encode()),
            (b"retry-after", str(self.retry_after).encode()),
            (b"connection", b"close"),
        ]


def answer(path: str, what: str) -> OverloadAnswer:
    """An agent's client tries again by itself; a delivery is found in GitHub's log."""
    if path.startswith(_GATEWAYS):
        response = refusals.error_response(529, f"Overloaded: {what}")
        return OverloadAnswer(2, bytes(response.body))
    return OverloadAnswer(30, b'{"status":"overloaded","why":"%s"}' % what.encode())


def few_left(descriptor: int) -> bool:
    """Told by the newest one: the system gives the lowest number that is free."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft != resource.RLIM_INFINITY and descriptor >= soft - reserve()


def reserve() -> int:
    """Of a small limit a part."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return RESERVE if soft == resource.RLIM_INFINITY else min(RESERVE, soft // 4)


def short_of_descriptors() -> bool:
    try:
        newest = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        return few_left(newest)
    finally:
        os.close(newest)


class Shedding:
    """In the place of the application on a connection that took one of the last descriptors."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in WATCHED:
            await _refuse(scope, send, "too many connections are open")
        else:
            await self._app(scope, receive, send)


class Sturdy:
    """The application; what the machine denied it is said as such, not as a bug of ours. Starlette must have it inside:
    it answers errors by itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except (MemoryError, OSError) as error:
            if begun or scope["type"] != "http" or not _is_starved(error):
                raise
            await _refuse(scope, send, "memory or files are short")


def _is_starved(error: MemoryError | OSError) -> bool:
    return isinstance(error, MemoryError) or error.errno in _STARVED


async def _refuse(scope: Scope, send: Send, what: str) -> None:
    found = answer(scope["path"], what)
    await send({"type": "http.response.start", "status": 503, "headers": found.headers})
    await send({"type": "http.response.body", "body": found.body})
