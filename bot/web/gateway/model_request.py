"""What a request asks of the model, read once: its size for the budget, and what would get around our limits.

The body is decoded and encoded again, so that no two parsers can read two different requests in it (a key that
stands there twice, say), in steps of which none is long: a step holds the whole process, also from a thread. Features
through which the provider's own servers would fetch an address for the agent are refused, because they go around the
egress rules; features without a known price, because no budget could hold.
"""

from __future__ import annotations

import re
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
"""Tools that the client runs, or that cost nothing of their own. Each by its whole name: the provider's own may begin
with the same word, as `bash_code_execution` does."""
SEARCH = re.compile(r"web_search_20\d{6}", re.ASCII)
MOST_SEARCHES = 8
"""Of one request, as the agents' own programs ask for it: all are reserved for, since none shows before it is paid."""
PLACES = (None, "global", "us")
"""Where the provider may be told to think, as far as it is known what that costs."""
ELSEWHERE = ("container_upload", "file", "url")
"""Where content may be that is not in the request."""
MOST_PARTS = 100_000
"""Values and members outside of strings. A conversation that fills a window of a million tokens has some ten thousand;
a body of nothing but tiny lists takes a gigabyte and seconds to decode."""
PIECE_BYTES = 8 << 20
"""Of one message, tool or other field: decoding and encoding it again takes up to 40 ms."""
STEP_BYTES = 1 << 18
MARKS = (b",", b"[", b"{")
LISTS = ("messages", "system", "tools")

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])
_NO_JSON = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_DATED = re.compile(r"[a-z_]+_20\d{6}")
"""How the provider names its own tools, wherever in a request they are defined."""


@dataclass(frozen=True)
class CheckedRequest:
    """A request that may be forwarded, if there is money."""

    body: bytes
    model: str
    sizes: Sizes
    left_out: frozenset[str] = frozenset()
    """Fields that do not go on."""


class PartRole(Enum):
    """What the provider takes a part of the request for."""

    MESSAGE = "message"
    BLOCK = "block"
    """Of content: in a message, in the result of a tool, in a document."""
    SOURCE = "source"
    IMAGE = "image"
    """The source of an image."""
    DATA = "data"
    """Read as text, whatever it says to be: what a tool is called with, say."""


@dataclass
class RequestContents:
    """What one walk over everything in the request has met."""

    images: int = 0
    image_bytes: int = 0
    searches: int = 0
    is_opaque: bool = False


def read(raw: bytes, *, allowed_model: str, dialect: Dialect | None = None) -> CheckedRequest:
    """Raises Refusal. Takes up to a second for the largest; in a thread it never holds the loop for long."""
    body = decode(raw)
    left_out = (dialect or Dialect()).check(body)
    model = body.get("model")
    if not isinstance(model, str) or canonical(model) != canonical(allowed_model):
        raise GatewayRefusal(403, "model", "This token is for another model.")
    if body.get("speed") not in (None, "standard"):
        raise GatewayRefusal(403, "feature", "speed: only the standard speed is available through this gateway")
    if body.get("inference_geo") not in PLACES:
        raise GatewayRefusal(403, "feature", "inference_geo: not available through this gateway")
    found = _walked(body)
    sizes = Sizes(
        text_bytes=len(raw) - found.image_bytes,
        images=found.images,
        max_tokens=_most_output(body),
        cache=_cache(raw),
        searches=found.searches,
        in_the_us=body.get("inference_geo") == "us",
        is_opaque=found.is_opaque,
    )
    return CheckedRequest(encode(body), model, sizes, left_out)


def _most_output(body: dict[str, Any]) -> int:
    """Thinking that goes on between calls of tools may have a budget of its own that is larger."""
    thinking = body.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    return max(_count(body.get("max_tokens", 0), "max_tokens"), _count(budget or 0, "thinking.budget_tokens"))


def _count(value: Any, name: str) -> int:
    if type(value) is not int or value < 0:
        raise GatewayRefusal(400, "malformed", f"{name}: Input should be a valid integer")
    return value


def _walked(body: dict[str, Any]) -> RequestContents:
    """Every dict and every list, whatever the key under which it stands: the provider may read it there."""
    found = RequestContents()
    waiting: list[tuple[Any, PartRole]] = []
    for name, value in body.items():
        if name == "tools" and isinstance(value, list):
            for tool in value:
                _tool(tool, found)
                waiting += _inner(tool, PartRole.DATA)
        elif name == "context_management":  # whose edits are dated as tools are, and checked before
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
    """Tells what stands under this key of a dict of that type."""
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
        if not (isinstance(held.get("type"), str) and _DATED.fullmatch(held["type"])):  # which is met by itself
            _tool(held, found)


def _attached(source: dict[str, Any], found: RequestContents, *, of_image: bool) -> None:
    """An image costs a known sum at most. The size of anything else tells nothing of what is in it."""
    data, media = source.get("data"), source.get("media_type")
    if of_image and isinstance(data, str) and isinstance(media, str) and media.startswith("image/"):
        found.images += 1
        found.image_bytes += len(data)
    else:
        found.is_opaque = True


def _tool(tool: Any, found: RequestContents) -> None:
    """The provider may search as often as is said: a request that does not bound it could cost any multiple of its
    reserve."""
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
    """Raises Refusal."""
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
    """Encodes what `decode` has given, with every key once."""
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + _encoded(value) for name, value in body.items()) + b"}"


def _piece(part: msgspec.Raw) -> Any:
    if len(memoryview(part)) > PIECE_BYTES:
        most = PIECE_BYTES >> 20
        raise GatewayRefusal(
            413, "too_large", f"Request exceeds the maximum size: one message is larger than {most} MB."
        )
    return msgspec.json.decode(part)


def _encoded(value: Any) -> bytes:
    if isinstance(value, list):
        return b"[" + b",".join(map(msgspec.json.encode, value)) + b"]"
    return msgspec.json.encode(value)


def _marks(raw: bytes) -> int:
    """Counts those in strings, too: quick, and nearly always few enough."""
    found, start = 0, 0
    while start < len(raw) and found <= MOST_PARTS:
        end = start + STEP_BYTES
        found += sum(raw.count(mark, start, end) for mark in MARKS)
        start = end
    return found


def _count_parts(raw: bytes) -> None:
    """Exactly, without what stands in strings. Raises Refusal as soon as there are too many."""
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
    """Never between a backslash and what it escapes."""
    end = min(start + STEP_BYTES, len(raw))
    step = raw[start:end]
    slashes = len(step) - len(step.rstrip(b"\\"))
    return end - 1 if slashes % 2 and end < len(raw) and len(step) > 1 else end


def _too_many_parts() -> GatewayRefusal:
    return GatewayRefusal(413, "too_large", "The request has too many parts.")
