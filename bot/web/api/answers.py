"""Writes the API's answers: one shape for each error, and no headers that let a browser's page read them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from bot.web.api.shapes import Code, ErrorAnswer, Problem

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
CODES: dict[int, Code] = {
    400: "bad_request",
    401: "no_token",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    409: "conflict",
    413: "too_large",
    422: "invalid",
    429: "too_many_requests",
    500: "broken",
    503: "unavailable",
}
MORE = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "10"}, 503: {"Retry-After": "10"}}


class ApiRefusal(Exception):
    """Carries the status and the sentence of an error."""

    def __init__(self, status: int, sentence: str, code: Code | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.problem = Problem(code or CODES[status], sentence)

    def answer(self) -> Response:
        return written(ErrorAnswer(self.problem), self.status, MORE.get(self.status, {}))


def written(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    body = msgspec.json.encode(value)
    return Response(body, status, {**HEADERS, **(headers or {})}, media_type="application/json")
