"""Amazon's framing of streamed answers (`application/vnd.amazon.eventstream`), turned into server-sent events. Pure.

A message is: its length and that of its headers (4 bytes each), a checksum of these, headers, payload, and a checksum
of all before it. The payload of a `chunk` is JSON with one of Anthropic's events in base64.
"""

from __future__ import annotations

import binascii
import re
import struct
from collections.abc import Mapping

import msgspec

from bot.web.gateway import clients
from bot.web.gateway.providers import BrokenStream

MOST_BYTES = 8 << 20
"""Of one message; an event of an answer is far smaller."""
MOST_HEADER_BYTES = 128 << 10
PRELUDE, AROUND = 12, 16
_PRELUDE = struct.Struct(">III")
_CHECKSUM = struct.Struct(">I")
_STRING = 7
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""The number of bytes of each type of header value with a fixed length."""
_NAME = re.compile(r"[a-z_]{1,60}")
KINDS = {
    "throttlingException": "rate_limit_error",
    "serviceUnavailableException": "overloaded_error",
    "modelTimeoutException": "timeout_error",
    "validationException": "invalid_request_error",
}


class _Chunk(msgspec.Struct):
    event: bytes = msgspec.field(name="bytes")


class _Event(msgspec.Struct):
    type: str = ""


class _Trouble(msgspec.Struct):
    message: str = ""


_chunks: msgspec.json.Decoder[_Chunk] = msgspec.json.Decoder(_Chunk)
_events: msgspec.json.Decoder[_Event] = msgspec.json.Decoder(_Event)
_troubles: msgspec.json.Decoder[_Trouble] = msgspec.json.Decoder(_Trouble)


class AmazonStream:
    """Holds at most one message that is not whole yet."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, chunk: bytes) -> bytes:
        self._held += chunk
        found: list[bytes] = []
        at = 0
        while (size := self._size(at)) and at + size <= len(self._held):
            found.append(_event(bytes(self._held[at : at + size])))
            at += size
        del self._held[:at]
        return b"".join(found)

    def end(self) -> None:
        if self._held:
            raise BrokenStream("the last message is not whole")

    def _size(self, at: int) -> int:
        """Return the length of the message that begins there; 0 if its prelude is not whole."""
        if len(self._held) - at < PRELUDE:
            return 0
        size, heads, checksum = _PRELUDE.unpack_from(self._held, at)
        if binascii.crc32(self._held[at : at + PRELUDE - 4]) != checksum:
            raise BrokenStream("the checksum of a prelude is wrong")
        if not AROUND <= size <= MOST_BYTES or heads > min(MOST_HEADER_BYTES, size - AROUND):
            raise BrokenStream("a message has an impossible length")
        return int(size)


def _event(message: bytes) -> bytes:
    (checksum,) = _CHECKSUM.unpack_from(message, len(message) - 4)
    if binascii.crc32(message[:-4]) != checksum:
        raise BrokenStream("the checksum of a message is wrong")
    start = PRELUDE + _PRELUDE.unpack_from(message)[1]
    headers, payload = _headers(message[PRELUDE:start]), message[start:-4]
    try:
        if headers.get(":message-type") == "event":
            return _said(payload) if headers.get(":event-type") == "chunk" else b""
        kind = headers.get(":exception-type") or headers.get(":error-code", "")
        words = _troubles.decode(payload).message if payload else headers.get(":error-message", "")
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BrokenStream("a message holds no JSON") from None
    return clients.error_event(KINDS.get(kind, "api_error"), f"Amazon Bedrock: {words or kind}")


def _said(payload: bytes) -> bytes:
    data = _chunks.decode(payload).event
    name = _events.decode(data).type
    if not _NAME.fullmatch(name):
        raise BrokenStream("an event has no name")
    # in JSON, a line break outside of strings is white space, and inside of them there is none
    line = data.replace(b"\n", b" ").replace(b"\r", b" ")
    return b"event: %s\ndata: %s\n\n" % (name.encode(), line)


def _headers(raw: bytes) -> Mapping[str, str]:
    """Read the headers; only those with a text count."""
    found: dict[str, str] = {}
    at = 0
    try:
        while at < len(raw):
            name = raw[at + 1 : at + 1 + raw[at]].decode("ascii")
            at += 1 + raw[at]
            kind = raw[at]
            if kind in _SIZES:
                at += 1 + _SIZES[kind]
                continue
            size = int.from_bytes(raw[at + 1 : at + 3], "big")
            value = raw[at + 3 : at + 3 + size]
            if kind not in (6, _STRING) or len(value) != size:
                raise BrokenStream("a header is broken")
            if kind == _STRING:
                found[name] = value.decode("utf-8")
            at += 3 + size
    except (IndexError, UnicodeDecodeError):
        raise BrokenStream("a header is broken") from None
    return found
