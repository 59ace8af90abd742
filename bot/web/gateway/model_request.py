"""Reads a request once: its size for the budget, and everything that would get around our limits.

The body is decoded and encoded again, so that two parsers cannot read it differently (because of a duplicate key, say).
That happens in short steps, because each step holds the whole process, even in a thread. Features with which the
provider would fetch an address are refused, because they bypass the egress rules. Features without a known price are
refused too, because no budget could hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from bot.sessions.money.budget import CacheUse, Sizes, canonical
from bot.web.gateway.clients import GatewayRefusal
from bot.web.gateway.dialect import Dialect

CLIENT_TOOL = re.compile(
    r"custom|(?:bash|text_editor|computer|memory)_20\d{6}|tool_search_tool_(?:bm25|regex)(?:_20\d{6})?", re.ASCII
)
"""Tools that the client runs, or that cost nothing extra. The whole name must match: tools of the provider may begin
with the same word, as `bash_code_execution` does."""
SCHEMA_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
SEARCH = re.compile(r"web_search_20\d{6}", re.ASCII)
MOST_SEARCHES = 8
"""In one request; agents ask for as many. All are reserved for, because none shows before it costs money."""
QUESTION = re.compile(r"Question ([a-z0-9]{8}-[0-9]{1,9}) of ", re.ASCII)
"""The first words of a question beside the work (`bot.agent.prompt`)."""
LATEST = 2
"""The program may put a note of its own behind a person's words."""
PLACES = (None, "global", "us")  # values of `inference_geo` with a known price
ELSEWHERE = ("container_upload", "file", "url")  # types of content that is not in the request
MOST_PARTS = 100_000
"""Values and members outside of strings. A full window of a million tokens has about ten thousand. A body full of tiny
lists takes seconds and a gigabyte to decode."""
PIECE_BYTES = 8 << 20
"""The limit for one message, tool or other field: decoding and encoding it takes up to 40 ms."""
STEP_BYTES = 1 << 18
MARKS = (b",", b"[", b"{")
LISTS = ("messages", "system", "tools")

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])
_NO_JSON = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_DATED = re.compile(r"[a-z_]+_20\d{6}")  # the form of the names of the provider's own tools


@dataclass(frozen=True)
class CheckedRequest:
    body: bytes
    model: str
    """By the name under which it was allowed."""
    sizes: Sizes
    left_out: frozenset[str] = frozenset()
    streams: bool = False
    question: str | None = None
    """Asked beside the work."""


class PartRole(Enum):
    """The provider's view of a part of the request."""

    MESSAGE = "message"
    BLOCK = "block"  # content of a message, a tool's result or a document
    SOURCE = "source"
    IMAGE = "image"
    DATA = "data"
    """Read as text, whatever its type says, such as the input of a tool call."""


@dataclass
class RequestContents:
    images: int = 0
    image_bytes: int = 0
    searches: int = 0
    is_opaque: bool = False


def read(
    raw: bytes,
    *,
    allowed: Sequence[str],
    dialect: Dialect | None = None,
    encoded: Callable[[str, dict[str, Any]], bytes] | None = None,
) -> CheckedRequest:
    """Takes up to a second for the largest body; run it in a thread, where no step holds the loop for long."""
    body = decode(raw)
    left_out = (dialect or Dialect()).check(body)
    model = _allowed(body.get("model"), allowed)
    if body.get("speed") not in (None, "standard"):
        raise GatewayRefusal(403, "feature", "speed: only the standard speed is available through this gateway")
    if body.get("inference_geo") not in PLACES:
        raise GatewayRefusal(403, "feature", "inference_geo: not available through this gateway")
    found = _walked(body)
    thinking = body.get("thinking")
    thought = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    sizes = Sizes(
        text_bytes=len(raw) - found.image_bytes,
        images=found.images,
        # thinking between tool calls may have its own, larger budget
        max_tokens=max(_count(body.get("max_tokens", 0), "max_tokens"), _count(thought or 0, "thinking.budget_tokens")),
        cache=_cache(raw),
        searches=found.searches,
        in_the_us=body.get("inference_geo") == "us",
        is_opaque=found.is_opaque,
    )
    question, streams = _question(body.get("messages")), body.get("stream") is True
    sent = encoded(model, body) if encoded else encode(body)
    return CheckedRequest(sent, model, sizes, left_out, streams, question)


def _question(messages: Any) -> str | None:
    """Return the name of the question beside the work that stands at the end. An agent can claim one: the name decides
    only where its cost is shown."""
    for message in messages[-LATEST:] if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        block = content[-1] if isinstance(content, list) and content else None
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str) and (found := QUESTION.match(text)):
            return found[1]
    return None


def _allowed(model: Any, allowed: Sequence[str]) -> str:
    same = (name for name in allowed if isinstance(model, str) and canonical(name) == canonical(model))
    if (found := next(same, None)) is None:
        raise GatewayRefusal(403, "model", "This token is for another model.")
    return found


def _count(value: Any, name: str) -> int:
    if type(value) is not int or value < 0:
        raise GatewayRefusal(400, "malformed", f"{name}: Input should be a valid integer")
    return value


def _walked(body: dict[str, Any]) -> RequestContents:
    """Visit every dict and list, whatever its key: the provider may read it there."""
    found = RequestContents()
    waiting: list[tuple[Any, PartRole]] = []
    for name, value in body.items():
        if name == "tools" and isinstance(value, list):
            for tool in value:
                _tool(tool, found)
                waiting += _inner(tool, PartRole.DATA)
        elif name == "context_management":  # its edits have dates like tools, and are already checked
            edits = value.get("edits") if isinstance(value, dict) else None
            for edit in edits if isinstance(edits, list) else ():
                waiting += _inner(edit, PartRole.DATA)
        else:
            waiting.append((value, PartRole.MESSAGE if name == "messages" else PartRole.DATA))
    while waiting:
        part, where = waiting.pop()
        if isinstance(part, dict):
            _block(part, found, of_image=where is PartRole.IMAGE)
        waiting += _inner(part, where)
    return found


def _inner(part: Any, where: PartRole) -> list[tuple[Any, PartRole]]:
    if isinstance(part, dict):
        kind = part.get("type")
        return [(value, _within(where, kind, name)) for name, value in part.items() if isinstance(value, dict | list)]
    if isinstance(part, list):
        return [(value, where) for value in part if isinstance(value, dict | list)]
    return []


def _within(where: PartRole, kind: Any, name: str) -> PartRole:
    """Return the role of the value under this key of a dict of that type."""
    if name == "content" and where in (PartRole.MESSAGE, PartRole.BLOCK, PartRole.SOURCE):
        return PartRole.BLOCK
    if name == "source" and where is PartRole.BLOCK:
        return PartRole.IMAGE if kind == "image" else PartRole.SOURCE
    return PartRole.DATA


def _block(block: dict[str, Any], found: RequestContents, *, of_image: bool) -> None:
    kind, source, tool = block.get("type"), block.get("source"), block.get("tool")
    if isinstance(kind, str):
        if kind in ELSEWHERE and (kind in block or "file_id" in block):
            raise _not_here()
        if kind == "base64":
            _attached(block, found, of_image=of_image)
        elif _DATED.fullmatch(kind):
            _tool(block, found)
    if isinstance(source, dict) and source.get("type") in ELSEWHERE:
        raise _not_here()
    if isinstance(tool, dict) and tool.get("type") != "tool_reference":
        definition = tool.get("definition")
        held = definition if isinstance(definition, dict) else tool
        if held.get("type") in SCHEMA_TYPES:  # a parameter that is called `tool`
            return
        if not (isinstance(held.get("type"), str) and _DATED.fullmatch(held["type"])):  # the walk meets dated ones
            _tool(held, found)


def _attached(source: dict[str, Any], found: RequestContents, *, of_image: bool) -> None:
    """Count an image, whose highest cost is known. The size of anything else does not show its cost."""
    data, media = source.get("data"), source.get("media_type")
    if of_image and isinstance(data, str) and isinstance(media, str) and media.startswith("image/"):
        found.images += 1
        found.image_bytes += len(data)
    else:
        found.is_opaque = True


def _tool(tool: Any, found: RequestContents) -> None:
    """Refuse a search without a bound: it could cost any multiple of the reserve."""
    kind = (tool.get("type") or "custom") if isinstance(tool, dict) else "custom"
    is_search = isinstance(kind, str) and SEARCH.fullmatch(kind) is not None
    if not isinstance(kind, str) or not (is_search or CLIENT_TOOL.fullmatch(kind)):
        raise GatewayRefusal(403, "feature", "tools: a tool of the provider is not available through this gateway")
    if is_search:
        uses = tool.get("max_uses")
        if type(uses) is not int or not 0 < uses <= MOST_SEARCHES - found.searches:
            words = f"tools: web search needs max_uses, of at most {MOST_SEARCHES} in one request"
            raise GatewayRefusal(403, "feature", words)
        found.searches += uses


def _not_here() -> GatewayRefusal:
    return GatewayRefusal(403, "feature", "source: only content that is in the request is available")


def _cache(raw: bytes) -> CacheUse:
    if b"cache_control" not in raw and b"\\u" not in raw:
        return CacheUse.NONE
    return CacheUse.LONG if b'"1h"' in raw or b"\\u" in raw else CacheUse.SHORT


def decode(raw: bytes) -> dict[str, Any]:
    if _marks(raw) > MOST_PARTS:
        _count_parts(raw)
    try:
        return {
            name: [_piece(item) for item in _list.decode(part)]
            if name in LISTS and bytes(memoryview(part)[:1]) == b"["
            else _piece(part)
            for name, part in _fields.decode(raw).items()
        }
    except msgspec.ValidationError:
        raise GatewayRefusal(400, "malformed", "The request body must be a JSON object") from None
    except _NO_JSON:
        raise GatewayRefusal(400, "malformed", "The request body is not valid JSON") from None


def encode(body: dict[str, Any]) -> bytes:
    """Encode what `decode` returned, with every key once."""

    def encoded(value: Any) -> bytes:
        if isinstance(value, list):
            return b"[" + b",".join(map(msgspec.json.encode, value)) + b"]"
        return msgspec.json.encode(value)

    return b"{" + b",".join(msgspec.json.encode(name) + b":" + encoded(value) for name, value in body.items()) + b"}"


def _piece(part: msgspec.Raw) -> Any:
    if len(memoryview(part)) > PIECE_BYTES:
        words = f"Request exceeds the maximum size: one message is larger than {PIECE_BYTES >> 20} MB."
        raise GatewayRefusal(413, "too_large", words)
    return msgspec.json.decode(part)


def _marks(raw: bytes) -> int:
    """Count quickly, strings included; there are nearly always few enough."""
    found, start = 0, 0
    while start < len(raw) and found <= MOST_PARTS:
        end = start + STEP_BYTES
        found += sum(raw.count(mark, start, end) for mark in MARKS)
        start = end
    return found


def _count_parts(raw: bytes) -> None:
    """Count exactly, without strings; refuse as soon as there are too many."""
    parts, start, inside = 0, 0, 0
    while start < len(raw):
        end = _end_of_step(raw, start)
        step = raw[start:end].replace(b"\\\\", b"").replace(b'\\"', b"")
        if step.count(b'"') + parts > 4 * MOST_PARTS:
            raise _too_many_parts()
        spoken = step.split(b'"')
        outside = b" ".join(spoken[inside::2])
        parts += sum(map(outside.count, MARKS))
        if parts > MOST_PARTS:
            raise _too_many_parts()
        inside = (inside + len(spoken) - 1) % 2
        start = end


def _end_of_step(raw: bytes, start: int) -> int:
    """Never end between a backslash and the character it escapes."""
    end = min(start + STEP_BYTES, len(raw))
    step = raw[start:end]
    slashes = len(step) - len(step.rstrip(b"\\"))
    return end - 1 if slashes % 2 and end < len(raw) and len(step) > 1 else end


def _too_many_parts() -> GatewayRefusal:
    return GatewayRefusal(413, "too_large", "The request has too many parts.")
