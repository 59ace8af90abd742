"""Decodes the JSON of a request, and encodes it again, in steps of which none is long: a step holds the whole process,
also from a thread of its own."""

from __future__ import annotations

from typing import Any

import msgspec

from bot.web.gateway.errors import Refusal

MOST_PARTS = 100_000
"""Values and members outside of strings. A conversation that fills a window of a million tokens has some ten thousand;
a body of nothing but tiny lists takes a gigabyte and seconds to decode."""
PIECE_BYTES = 8 << 20
"""Of one message, tool or other field: decoding and encoding it again takes up to 40 ms."""
STEP_BYTES = 1 << 18
MARKS = (b",", b"[", b"{")
LISTS = ("messages", "system", "tools")

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_NO_JSON = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


def decode(raw: bytes) -> dict[str, Any]:
    """Raises Refusal."""
    if _marks(raw) > MOST_PARTS:
        _count_parts(raw)
    try:
        return {name: _value(name, part) for name, part in _fields.decode(raw).items()}
    except msgspec.ValidationError:
        raise Refusal(400, "malformed", "The request body must be a JSON object") from None
    except _NO_JSON:
        raise Refusal(400, "malformed", "The request body is not valid JSON") from None


def encode(body: dict[str, Any]) -> bytes:
    """What `decode` has given, with every key once."""
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + _encoded(value) for name, value in body.items()) + b"}"


def _value(name: str, part: msgspec.Raw) -> Any:
    if name in LISTS and bytes(memoryview(part)[:1]) == b"[":
        return [_piece(item) for item in _items.decode(part)]
    return _piece(part)


def _piece(part: msgspec.Raw) -> Any:
    if len(memoryview(part)) > PIECE_BYTES:
        most = PIECE_BYTES >> 20
        raise Refusal(413, "too_large", f"Request exceeds the maximum size: one message is larger than {most} MB.")
    return msgspec.json.decode(part)


def _encoded(value: Any) -> bytes:
    if isinstance(value, list):
        return b"[" + b",".join(map(msgspec.json.encode, value)) + b"]"
    return msgspec.json.encode(value)


def _marks(raw: bytes) -> int:
    """Those in strings included: quick, and nearly always few enough."""
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
            raise too_many()
        spoken = step.split(b'"')
        outside = b" ".join(spoken[inside::2])
        parts += sum(map(outside.count, MARKS))
        if parts > MOST_PARTS:
            raise too_many()
        inside = (inside + len(spoken) - 1) % 2
        start = end


def _end_of_step(raw: bytes, start: int) -> int:
    """Never between a backslash and what it escapes."""
    end = min(start + STEP_BYTES, len(raw))
    step = raw[start:end]
    slashes = len(step) - len(step.rstrip(b"\\"))
    return end - 1 if slashes % 2 and end < len(raw) and len(step) > 1 else end


def too_many() -> Refusal:
    return Refusal(413, "too_large", "The request has too many parts.")
