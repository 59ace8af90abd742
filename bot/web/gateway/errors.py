"""How the gateway says no: in the form of Anthropic's API, so that the agent's client understands it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

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


class Refusal(Exception):
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
    """In the place of the gateway where no sandbox comes: no token is looked at."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await Refusal(403, "closed", "No sandbox comes to this address.").response()(scope, receive, send)


def exhausted() -> Refusal:
    return Refusal(400, "budget", NO_CREDIT)
