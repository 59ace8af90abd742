"""What those who post to the webhook were answered: counted, and refusals said in the log, now and then."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

STATUSES = (202, 400, 401, 408, 409, 413, 415, 503)
SPACING_SECONDS = 60.0
"""Between two lines about the same status: whoever can reach us could fill the log otherwise."""
WHY = {
    401: "the signature is missing or wrong; where GitHub has sent it, FORGEHAND_WEBHOOK_SECRET is not the App's",
    413: "the body is too large",
    415: "the body is encoded; set the webhook's content type to application/json",
}


class Answered:
    """Around the endpoint; `count` is told each status."""

    def __init__(self, app: ASGIApp, count: Callable[[int], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._count = count
        self._clock = clock
        self._silent: Counter[int] = Counter()
        self._said_at: dict[int, float] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(message["status"])
            await send(message)

        await self._app(scope, receive, noting)

    def _note(self, status: int) -> None:
        self._count(status)
        if status < 400:
            return
        self._silent[status] += 1
        now, said_at = self._clock(), self._said_at.get(status)
        if said_at is not None and now - said_at < SPACING_SECONDS:
            return
        self._said_at[status] = now
        told = {"status": status, "times": self._silent.pop(status), "why": WHY.get(status, "see its answer at GitHub")}
        log.warning("webhooks were refused", extra=told)
