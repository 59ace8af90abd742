"""What a request asks of the model, read once: its size for the budget, and what would get around our limits.

The body is decoded and encoded again, so that no two parsers can read two different requests in it (a key that
stands there twice, say). Features through which the provider's own servers would fetch an address for the agent
are refused, because they go around the egress rules; features without a known price, because no budget could hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from bot.sessions.money import prices
from bot.sessions.money.budget import CacheUse, Sizes
from bot.web.gateway.errors import Refusal

CLIENT_TOOLS = ("custom", "bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_")
"""Tools that the client runs, or that cost nothing of their own."""
SEARCH = "web_search_"
MOST_SEARCHES = 8
"""Of one request, as the agents' own programs ask for it: all are reserved for, since none shows before it is paid."""
PLACES = (None, "global", "us")
"""Where the provider may be told to think, as far as it is known what that costs."""
MOST_PARTS = 3_000_000
"""Commas and brackets: a body of nothing but tiny lists takes a gigabyte and seconds to decode. Text has few."""
REMOTE_FIELDS = ("mcp_servers", "container")
STAND_INS = "fallbacks"
"""Models that the provider would take in the place of the one that was asked for, whatever they cost: a request goes on
without them, as it would to a provider that does not know of it."""


@dataclass(frozen=True)
class Ask:
    """A request that may be forwarded, if there is money."""

    body: bytes
    model: str
    sizes: Sizes


def read(raw: bytes, *, allowed_model: str) -> Ask:
    """Raises Refusal."""
    body = _decode(raw)
    body.pop(STAND_INS, None)
    model = body.get("model")
    if not isinstance(model, str) or prices.canonical(model) != prices.canonical(allowed_model):
        raise Refusal(403, "model", "This token is for another model.")
    _refuse_remote(body)
    max_tokens = body.get("max_tokens", 0)
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 0:
        raise Refusal(400, "malformed", "max_tokens: Input should be a valid integer")
    images, image_bytes, is_opaque = _attached(body)
    sizes = Sizes(
        text_bytes=len(raw) - image_bytes,
        images=images,
        max_tokens=max_tokens,
        cache=_cache(raw),
        searches=_searches(body),
        in_the_us=body.get("inference_geo") == "us",
        is_opaque=is_opaque,
        streams=body.get("stream") is True,
    )
    return Ask(msgspec.json.encode(body), model, sizes)


def _decode(raw: bytes) -> dict[str, Any]:
    if sum(map(raw.count, (b",", b"[", b"{"))) > MOST_PARTS:
        raise Refusal(413, "too_large", "The request has too many parts.")
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Refusal(400, "malformed", "The request body is not valid JSON") from None
    if not isinstance(body, dict):
        raise Refusal(400, "malformed", "The request body must be a JSON object")
    return body


def _refuse_remote(body: dict[str, Any]) -> None:
    for name in REMOTE_FIELDS:
        if body.get(name):
            raise Refusal(403, "feature", f"{name}: not available through this gateway")
    if body.get("speed") not in (None, "standard"):
        raise Refusal(403, "feature", "speed: only the standard speed is available through this gateway")
    if body.get("inference_geo") not in PLACES:
        raise Refusal(403, "feature", "inference_geo: not available through this gateway")
    for tool in _tools(body):
        kind = tool.get("type") or "custom"
        if not isinstance(kind, str) or not kind.startswith((*CLIENT_TOOLS, SEARCH)):
            raise Refusal(403, "feature", "tools: a tool of the provider is not available through this gateway")


def _searches(body: dict[str, Any]) -> int:
    """How often the provider may search: a request that does not bound it could cost any multiple of its reserve."""
    found = 0
    for tool in _tools(body):
        if str(tool.get("type")).startswith(SEARCH):
            uses = tool.get("max_uses")
            if type(uses) is not int or not 0 < uses <= MOST_SEARCHES - found:
                words = f"tools: web search needs max_uses, of at most {MOST_SEARCHES} in one request"
                raise Refusal(403, "feature", words)
            found += uses
    return found


def _attached(body: dict[str, Any]) -> tuple[int, int, bool]:
    """How many images there are, how many bytes of the body they are, and whether there is anything of which the size
    tells nothing."""
    count, size, is_opaque = 0, 0, False
    for block in _blocks(body):
        source = block.get("source")
        if not isinstance(source, dict):
            continue
        if source.get("type") in ("url", "file"):
            raise Refusal(403, "feature", "source: only content that is in the request is available")
        data = source.get("data")
        if block.get("type") == "image" and isinstance(data, str):
            count, size = count + 1, size + len(data)
        elif source.get("type") == "base64":
            is_opaque = True
    return count, size, is_opaque


def _tools(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Also those that a message brings along in the middle of a conversation."""
    yield from _dicts(body.get("tools"))
    for block in _blocks(body):
        tool = block.get("tool")
        if isinstance(tool, dict) and tool.get("type") != "tool_reference":
            definition = tool.get("definition")
            yield definition if isinstance(definition, dict) else tool


def _blocks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every content block, also inside tool results and documents."""
    waiting = [*_dicts(body.get("messages")), *_dicts(body.get("system"))]
    while waiting:
        block = waiting.pop()
        yield block
        waiting += _dicts(block.get("content"))
        source = block.get("source")
        if isinstance(source, dict):
            waiting += _dicts(source.get("content"))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _cache(raw: bytes) -> CacheUse:
    if b"cache_control" not in raw and b"\\u" not in raw:
        return CacheUse.NONE
    return CacheUse.LONG if b'"1h"' in raw or b"\\u" in raw else CacheUse.SHORT
