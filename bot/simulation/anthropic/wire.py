"""The API's forms: messages, server-sent events and errors, byte for byte as clients know them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.models import TokenUsage
from bot.simulation.anthropic.script import Answer, Call, Calls, Say

ERROR_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
ERROR_WORDS = {
    401: "invalid x-api-key",
    429: "This request would exceed your account's rate limit. Please try again later.",
    500: "Internal server error",
    529: "Overloaded",
}
NO_CREDIT = (
    "Your credit balance is too low to access the Anthropic API. "
    "Please go to Plans & Billing to upgrade or purchase credits."
)
PIECE = 40
"""The characters of one delta."""
PINGS = 3
"""The pings of a stream during hidden thinking."""


def error_body(kind: str, message: str, request_id: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}


@dataclass(frozen=True)
class Message:
    """One answer of the model, ready for both forms."""

    id: str
    model: str
    content: Sequence[Mapping[str, Any]]
    stop_reason: str
    usage: TokenUsage

    def whole(self) -> dict[str, Any]:
        return self._object(list(self.content), self.stop_reason, _full_usage(self.usage, self.usage.output_tokens))

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (name, data) in the order of the real stream; text and tool input come in pieces."""
        start = self._object([], None, _full_usage(self.usage, 1))
        yield "message_start", {"type": "message_start", "message": start}
        for index, block in enumerate(self.content):
            yield from _block_events(index, block)
            if index == 0:
                yield "ping", {"type": "ping"}
        delta = {"stop_reason": self.stop_reason, "stop_sequence": None}
        usage = _full_usage(self.usage, self.usage.output_tokens)
        yield "message_delta", {"type": "message_delta", "delta": delta, "usage": usage}
        yield "message_stop", {"type": "message_stop"}

    def _object(self, content: list[Any], stop_reason: str | None, usage: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": usage,
        }


def event_bytes(name: str, data: Mapping[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def message(answer: Answer, *, id_: str, model: str, request_bytes: int) -> Message:
    """Build the message of an answer; usage that is not given is estimated from the sizes."""
    content = list(_content(answer, id_))
    produced = sum(len(json.dumps(block)) for block in content)
    thought = answer.thought if isinstance(answer, Say) else 0
    said = TokenUsage(input_tokens=request_bytes // 4 + 1, output_tokens=produced // 4 + 1 + thought)
    usage = answer.usage or said
    stop_reason = answer.stop_reason if isinstance(answer, Say) else "tool_use"
    return Message(id=id_, model=model, content=content, stop_reason=stop_reason, usage=usage)


def _content(answer: Answer, id_: str) -> Iterator[dict[str, Any]]:
    if isinstance(answer, Say) and answer.thought:
        yield {"type": "thinking", "thinking": "", "signature": "A" * 64}
    if answer.text:
        yield {"type": "text", "text": answer.text}
    calls: Sequence[Call] = answer.calls if isinstance(answer, Calls) else [answer] if isinstance(answer, Call) else []
    for number, call in enumerate(calls):
        name = f"toolu_{id_.removeprefix('msg_')}{number:02d}"
        if call is not answer and call.text:
            yield {"type": "text", "text": call.text}
        yield {"type": "tool_use", "id": name, "name": call.tool, "input": dict(call.input)}


def _block_events(index: int, block: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    empty: dict[str, Any]
    if block["type"] == "thinking":
        yield from _hidden_events(index, block)
        return
    if block["type"] == "text":
        empty = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
    else:
        empty = {**block, "input": {}}
        written = json.dumps(block["input"], ensure_ascii=False)
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *_pieces(written)]]
    yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
    for delta in deltas:
        yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": index}


def _hidden_events(index: int, block: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    empty = {"type": "thinking", "thinking": "", "signature": ""}
    yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
    for _ in range(PINGS):
        yield "ping", {"type": "ping"}
    delta = {"type": "signature_delta", "signature": block["signature"]}
    yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": index}


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def _full_usage(usage: TokenUsage, output_tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write_tokens,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }
