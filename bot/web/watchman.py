"""A loop that hangs cannot say so: a thread beside it answers who comes meanwhile, until the loop turns again.

A health check from outside (Docker's, a monitor's) finds the hang as well, by a time-out; it does not answer webhooks
and agents, who are promised a 503 with `Retry-After` at once.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time

from bot.web import overload

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
            client.sendall(_bytes(overload.answer(path, "the service hangs")))
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


def _bytes(answer: overload.OverloadAnswer) -> bytes:
    head = b"".join(name + b": " + value + b"\r\n" for name, value in answer.headers)
    return b"HTTP/1.1 503 Service Unavailable\r\n" + head + b"\r\n" + answer.body
