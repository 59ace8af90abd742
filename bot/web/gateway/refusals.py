"""How the gateway says no, in the form of Anthropic's API so that the agent's client understands it, and what the
operator learns of that: counts by reason, and lines in the log, each once in a while."""

from __future__ import annotations

import json
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

log = logging.getLogger("bot.web.gateway")

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    415: "invalid_request_error",
    429: "rate_limit_error",
    502: "api_error",
    529: "overloaded_error",
}
NO_CREDIT = "Your credit balance is too low to access the Anthropic API: the budget is used up."
"""The API's own words come first: the client ends on them at once instead of trying again."""
BUSY = "Overloaded: what this costs cannot be written down at the moment."
FINAL = {"x-should-retry": "false"}
"""The client obeys it: without it, a 401 is tried eleven times in three minutes."""

COMPLAINT_SECONDS = 600.0
MOST_MISUSES = 40
"""Refused requests of one token that no well-behaved program sends; then it is cut off."""
MOST_REMEMBERED = 10_000
MOST_NAMED = 50
"""Names from agents that are logged, each once: whoever makes up others fills no log."""
MISUSE = frozenset({"encoded", "feature", "field", "malformed", "model", "smuggled", "stalled", "too_large"})
STORM = "storm"


class GatewayRefusal(Exception):
    """Ends a request; `reason` is the word under which it is counted."""

    def __init__(self, status: int, reason: str, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    def response(self) -> Response:
        headers = FINAL if self.retry_after is None else {"retry-after": str(self.retry_after)}
        return error_response(self.status, self.message, headers)


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    content = json.dumps(error_object(KINDS.get(status, "api_error"), message))
    return Response(content, status, headers, "application/json")


def error_object(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def error_event(kind: str, message: str) -> bytes:
    """The same inside a stream that has begun."""
    return f"event: error\ndata: {json.dumps(error_object(kind, message))}\n\n".encode()


async def closed(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands in for the gateway where no sandbox comes: no token is looked at."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await GatewayRefusal(403, "closed", "No sandbox comes to this address.").response()(scope, receive, send)


def exhausted() -> GatewayRefusal:
    return GatewayRefusal(400, "budget", NO_CREDIT)


class RefusalWatch:
    """One for each gateway."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.refusals: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        """What requests went on without: betas and fields."""
        self._clock = clock
        self._complained: OrderedDict[tuple[object, str], float] = OrderedDict()
        self._misuses: OrderedDict[str, int] = OrderedDict()
        self._named: set[str] = set()

    def refused(self, refusal: GatewayRefusal) -> None:
        self.refusals[refusal.reason] += 1
        log.info("gateway refused a request", extra={"reason": refusal.reason, "status": refusal.status})
        if refusal.reason == "field":
            self.complain("field", "an agent's request was refused", refusal.message)

    def misused(self, token_sha256: str, refusal: GatewayRefusal) -> bool:
        """Returns whether the token is to be cut off now."""
        if refusal.reason not in MISUSE:
            return False
        count = self._misuses.pop(token_sha256, 0) + 1
        self._misuses[token_sha256] = count
        _bound(self._misuses)
        return count >= MOST_MISUSES

    def without(self, kind: str, names: Iterable[str]) -> None:
        """`kind` is `beta`, `field` or `query`; the names come from the agent, and so never become a label."""
        for name in names:
            self.left_out[kind] += 1
            if name not in self._named and len(self._named) < MOST_NAMED:
                self._named.add(name)
                words = "the %s %r was left out of a request, because nobody knows what it costs; %s lets it through"
                log.warning(words, kind, name[:80], "FORGEHAND_GATEWAY_ALLOW")

    def complain(self, about: object, what: str, detail: str) -> None:
        """Every request of every session meets the same trouble."""
        now = self._clock()
        if now - self._complained.get((about, what), float("-inf")) < COMPLAINT_SECONDS:
            return
        self._complained[about, what] = now
        _bound(self._complained)
        log.error("%s (%s): %s", what, about, detail)


def cut_off() -> GatewayRefusal:
    words = "The gateway has refused dozens of this turn's requests, so its token was cut off. Start the turn again."
    return GatewayRefusal(403, STORM, words)


def _bound(kept: OrderedDict[object, object] | OrderedDict[str, int] | OrderedDict[tuple[object, str], float]) -> None:
    while len(kept) > MOST_REMEMBERED:
        kept.popitem(last=False)
