"""Answers when descriptors, memory or time are short: come back soon; also while the event loop hangs."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
import socket
import threading
import time
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.web.gateway import clients

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
        response = clients.error_response(529, f"Overloaded: {what}")
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


log = logging.getLogger(__name__)

STALL_SECONDS = 6.0
"""Longer than a busy host makes anybody wait, shorter than GitHub does."""
LOOK_SECONDS = 0.25
PATIENCE_SECONDS = 0.5
"""With one client, which the others wait for."""
MOST_BYTES = 64 << 10


class Watchman:
    """`beat` from the loop. The listening socket is shared: whoever of the two comes first takes a connection."""

    def __init__(self, listener: socket.socket, stall_seconds: float = STALL_SECONDS) -> None:
        self._listener = listener
        self._stall = stall_seconds
        self._beat = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchman", daemon=True)

    def start(self) -> None:
        self.beat()
        self._thread.start()

    def stop(self) -> None:
        """Blocks for the client that it is with, at most."""
        self._ended.set()
        self._thread.join()

    def beat(self) -> None:
        self._beat = time.monotonic()

    def _run(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            if self._hangs():
                self._stand_in()

    def _stand_in(self) -> None:
        log.error(
            "the service hangs: who comes is asked to come back", extra={"seconds": time.monotonic() - self._beat}
        )
        while self._hangs() and not self._ended.is_set():
            if not self._answer_one():
                self._ended.wait(LOOK_SECONDS)

    def _hangs(self) -> bool:
        return time.monotonic() - self._beat > self._stall

    def _answer_one(self) -> bool:
        """False when nobody waits."""
        try:
            client, _ = self._listener.accept()
        except OSError:  # nobody, no descriptor for them, or the socket is closed
            return False
        with client, contextlib.suppress(OSError):
            client.settimeout(PATIENCE_SECONDS)
            path = _path(client)
            client.sendall(_bytes(answer(path, "the service hangs")))
            client.shutdown(socket.SHUT_WR)
            _drain(client)
        return True


def _path(client: socket.socket) -> str:
    """Of the request's first line."""
    head = client.recv(MOST_BYTES)
    words = head.split(b"\r\n", 1)[0].split(b" ")
    return words[1].decode("latin-1") if len(words) == 3 else "/"


def _drain(client: socket.socket) -> None:
    """What is sent and not read would make the system throw our answer away."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends and client.recv(MOST_BYTES):
        continue


def _bytes(answer: OverloadAnswer) -> bytes:
    head = b"".join(name + b": " + value + b"\r\n" for name, value in answer.headers)
    return b"HTTP/1.1 503 Service Unavailable\r\n" + head + b"\r\n" + answer.body
