"""Answers "come back soon" when descriptors or memory run out, and while the event loop hangs."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
import socket
import threading
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.web.gateway import clients

log = logging.getLogger(__name__)

SPARE_DESCRIPTORS = 256
"""Descriptors that connections leave for the work itself: files, pipes, the store, the provider."""
WATCHED = ("/healthz", "/readyz", "/metrics")
_STARVED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)
_GATEWAYS = ("/gateway/", "/anthropic/", "/v1/")
STALL_SECONDS = 6.0
"""Longer than a busy host makes anyone wait, shorter than GitHub waits."""
LOOK_SECONDS = 0.25
PATIENCE_SECONDS = 0.5  # spent on one client while the others wait
MOST_BYTES = 64 << 10


def overloaded_answer(path: str, what: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return (headers, body). An agent's client tries again by itself; a lost delivery turns up in GitHub's log."""
    retry_after, body = b"30", b'{"status":"overloaded","why":"%s"}' % what.encode()
    if path.startswith(_GATEWAYS):
        retry_after, body = b"2", bytes(clients.error_response(529, f"Overloaded: {what}").body)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"retry-after", retry_after),
        (b"connection", b"close"),
    ]
    return headers, body


def few_left(descriptor: int) -> bool:
    """Judge by the newest descriptor: the system always gives out the lowest free number."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft != resource.RLIM_INFINITY and descriptor >= soft - spare_descriptors()


def spare_descriptors() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return SPARE_DESCRIPTORS if soft == resource.RLIM_INFINITY else min(SPARE_DESCRIPTORS, soft // 4)


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
    """Replaces the application on a connection that took one of the last descriptors."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in WATCHED:
            await _refuse(scope, send, "too many connections are open")
        else:
            await self._app(scope, receive, send)


class Sturdy:
    """Wraps the application: if the machine runs out of memory or files, it answers 503 instead of 500. It must be
    inside Starlette, which answers errors by itself."""

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
            is_starved = isinstance(error, MemoryError) or error.errno in _STARVED
            if begun or scope["type"] != "http" or not is_starved:
                raise
            await _refuse(scope, send, "memory or files are short")


async def _refuse(scope: Scope, send: Send, what: str) -> None:
    headers, body = overloaded_answer(scope["path"], what)
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Watchman:
    """A thread that answers while the event loop does not call `beat`. Both accept from the same listening socket."""

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
        """Blocks until the client being answered is done."""
        self._ended.set()
        self._thread.join()

    def beat(self) -> None:
        self._beat = time.monotonic()

    def _run(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            if not self._hangs():
                continue
            seconds = time.monotonic() - self._beat
            log.error("the service hangs; clients are asked to come back", extra={"seconds": seconds})
            while self._hangs() and not self._ended.is_set():
                if not self._answer_one():
                    self._ended.wait(LOOK_SECONDS)

    def _hangs(self) -> bool:
        return time.monotonic() - self._beat > self._stall

    def _answer_one(self) -> bool:
        """Return False if nobody waits."""
        try:
            client, _ = self._listener.accept()
        except OSError:  # nobody waits, no descriptor is left, or the socket is closed
            return False
        with client, contextlib.suppress(OSError):
            client.settimeout(PATIENCE_SECONDS)
            words = client.recv(MOST_BYTES).split(b"\r\n", 1)[0].split(b" ")
            path = words[1].decode("latin-1") if len(words) == 3 else "/"
            headers, body = overloaded_answer(path, "the service hangs")
            head = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
            client.sendall(b"HTTP/1.1 503 Service Unavailable\r\n" + head + b"\r\n" + body)
            client.shutdown(socket.SHUT_WR)
            ends = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < ends and client.recv(MOST_BYTES):
                continue  # if the request stayed unread, the system would throw our answer away
        return True
