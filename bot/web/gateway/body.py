"""Reads a request's body under a cap and a deadline, and notices a client that goes away."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from bot.web.gateway.errors import Refusal

MAX_BODY_BYTES = 32 << 20
MOST_OF_ONE = 96 << 20
MOST_OF_ALL = 384 << 20

Take = Callable[[int], None]


class Room:
    """How much of bodies is in hand, of one token and of all: an agent may open a thousand connections at once, and
    what is read for each of them takes several times its size."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    @contextmanager
    def place(self, owner: str) -> Iterator[Take]:
        """Until its end it holds what was taken; to take too much raises Refusal."""
        mine = 0

        def take(size: int) -> None:
            nonlocal mine
            if self._held[owner] + size > MOST_OF_ONE or self._held.total() + size > MOST_OF_ALL:
                raise Refusal(429, "room", "Too much is being sent at once.", retry_after=1)
            mine += size
            self._held[owner] += size

        try:
            yield take
        finally:
            self._held[owner] -= mine
            if not self._held[owner]:
                del self._held[owner]


async def read_body(scope: Scope, receive: Receive, seconds: float, take: Take) -> bytes:
    """Raises Refusal; ClientDisconnect when the client went away first."""
    headers = {name.lower(): value for name, value in scope["headers"]}
    if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        raise Refusal(415, "encoded", "The request body must not be compressed.")
    announced = headers.get(b"content-length", b"0")
    if not announced.isdigit() or int(announced) > MAX_BODY_BYTES:
        raise too_large()
    try:
        async with asyncio.timeout(seconds):
            return await _read(receive, take)
    except TimeoutError:
        raise Refusal(408, "stalled", "The request body did not arrive in time.") from None


def too_large() -> Refusal:
    return Refusal(413, "too_large", "Request exceeds the maximum size")


async def until_gone(receive: Receive) -> None:
    """Return when the client closes the connection; only after its body was read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read(receive: Receive, take: Take) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        take(len(parts[-1]))
        if size > MAX_BODY_BYTES:
            raise too_large()
        if not message.get("more_body", False):
            return b"".join(parts)
