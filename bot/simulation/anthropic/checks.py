"""Refuses what the real API refuses, in its words: credential, version, model, required fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

TASK_BUDGETS, LEAST_TASK_TOKENS = "task-budgets-2026-03-13", 20_000
UNPACED = ("claude-opus-4-5", "claude-opus-4-6", "claude-sonnet-4", "claude-haiku-4")
MODEL_FAMILIES = ("claude-opus-", "claude-sonnet-", "claude-haiku-", "claude-fable-")


class Refused(Exception):
    """The API refuses the request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def credential(headers: Mapping[str, str], api_keys: Sequence[str], oauth_tokens: Sequence[str]) -> None:
    bearer = headers.get("authorization", "").removeprefix("Bearer ").strip()
    key = headers.get("x-api-key", "")
    if not key and not bearer:
        raise Refused(401, "x-api-key header is required")
    if key:
        if key not in api_keys:
            raise Refused(401, "invalid x-api-key")
        return
    if bearer not in oauth_tokens:
        raise Refused(401, "Invalid bearer token")
    if "oauth-2025-04-20" not in headers.get("anthropic-beta", ""):
        raise Refused(401, "OAuth authentication is currently not supported.")


def request(headers: Mapping[str, str], body: Any, *, counts_only: bool) -> None:
    if not headers.get("anthropic-version"):
        raise Refused(400, "anthropic-version: header is required")
    if not isinstance(body, dict):
        raise Refused(400, "The request body is not valid JSON")
    for name in ("model", "messages") if counts_only else ("model", "messages", "max_tokens"):
        if name not in body:
            raise Refused(400, f"{name}: Field required")
    if not str(body["model"]).startswith(MODEL_FAMILIES):
        raise Refused(404, f"model: {body['model']}")
    _task_budget(headers, body)
    _messages(body["messages"])


def _task_budget(headers: Mapping[str, str], body: Mapping[str, Any]) -> None:
    """Refuse a number without its beta, one that is too small, and one for a model that does not pace itself."""
    budget = (body.get("output_config") or {}).get("task_budget")
    if budget is None:
        return
    if TASK_BUDGETS not in headers.get("anthropic-beta", "") or str(body["model"]).startswith(UNPACED):
        raise Refused(400, "output_config.task_budget: Extra inputs are not permitted")
    if budget["total"] < LEAST_TASK_TOKENS:
        raise Refused(400, "output_config.task_budget.total: Input should be greater than or equal to 20000")


def _messages(messages: Any) -> None:
    if not isinstance(messages, list) or not messages:
        raise Refused(400, "messages: at least one message is required")
    pending: set[str] = set()
    for index, message in enumerate(messages):
        results = _ids(message, "tool_result", "tool_use_id")
        if pending - results:
            missing = ", ".join(sorted(pending - results))
            raise Refused(
                400,
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks after them: {missing}",
            )
        pending = _ids(message, "tool_use", "id") if message.get("role") == "assistant" else set()


def _ids(message: Any, kind: str, field: str) -> set[str]:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        return set()
    return {str(block.get(field)) for block in content if isinstance(block, dict) and block.get("type") == kind}
