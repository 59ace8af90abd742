"""Describes the API as OpenAPI 3.1, from the types that decode its requests and write its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any

import msgspec

from bot.web.api import requests, shapes

REF = "#/components/schemas/{name}"
USUAL = (401, 404, 405, 422, 429, 500, 503)
"""Errors that every operation may answer with."""
WITH_BODY = (400, 403, 408, 409, 413)


@dataclass(frozen=True)
class ApiOperation:
    method: str
    path: str
    name: str
    summary: str
    gives: type | None
    takes: type | None = None
    statuses: Sequence[int] = (200,)

    @property
    def asks(self) -> bool:
        return self.method == "post"


OPERATIONS = (
    ApiOperation(
        "post", "/sessions", "startSession", "Start a turn on an issue or pull request.",
        shapes.Accepted, shapes.SessionStart, (201, 202),
    ),
    ApiOperation("get", "/sessions/{id}", "getSession", "Show a session and its turns.", shapes.SessionAnswer),
    ApiOperation(
        "get", "/sessions/{id}/events", "followSession",
        "Follow a session as server-sent events: `turns`, `entries` (with an id to resume from), `over` at its end.",
        None,
    ),
    ApiOperation(
        "post", "/sessions/{id}/stop", "stopSession", "Stop what runs and waits; the work so far is saved.",
        shapes.Accepted, None, (200, 202),
    ),
    ApiOperation(
        "post", "/sessions/{id}/messages", "sendMessage", "Give words to the agent at work, or start the next turn.",
        shapes.Accepted, shapes.SessionWords, (200, 202),
    ),
    ApiOperation(
        "post", "/sessions/{id}/approvals", "answerApproval", "Answer an approval that waits.",
        shapes.Accepted, shapes.ApprovalWords, (200, 202),
    ),
)  # fmt: skip


@cache
def document() -> bytes:
    named = [one for operation in OPERATIONS for one in (operation.takes, operation.gives) if one is not None]
    _, schemas = msgspec.json.schema_components(
        [*dict.fromkeys(named), shapes.ErrorAnswer, shapes.EntryAnswer], ref_template=REF
    )
    paths: dict[str, dict[str, Any]] = {}
    for one in OPERATIONS:
        paths.setdefault(f"/api/v1{one.path}", {})[one.method] = _operation(one)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Forgehand", "version": metadata.version("forgehand")},
            "security": [{"token": []}],
            "paths": paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
        }
    )


def _operation(one: ApiOperation) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = []
    if "{id}" in one.path:
        parameters.append(_parameter("id", "path", "^[a-z0-9]{8}$"))
    if one.asks:
        parameters.append(_parameter(requests.KEY, "header", requests.KEY_FORM))
    if one.gives is None:
        last = {**_parameter("Last-Event-ID", "header", "^[0-9]{1,17}$"), "required": False}
        parameters.append(last)
    described: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "parameters": parameters,
        "responses": _responses(one),
    }
    if one.takes is not None:
        described["requestBody"] = {"required": True, "content": _json(one.takes)}
    return described


def _responses(one: ApiOperation) -> dict[str, Any]:
    good = _json(one.gives) if one.gives else {"text/event-stream": {"schema": {"type": "string"}}}
    errors = USUAL + (WITH_BODY if one.asks else ())
    return {
        **{
            str(status): {"description": "done" if status != 202 else "stored", "content": good}
            for status in one.statuses
        },
        **{str(status): {"description": "refused", "content": _json(shapes.ErrorAnswer)} for status in sorted(errors)},
    }


def _json(of: type) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": REF.format(name=of.__name__)}}}


def _parameter(name: str, where: str, pattern: str) -> dict[str, Any]:
    return {"name": name, "in": where, "required": True, "schema": {"type": "string", "pattern": pattern}}
