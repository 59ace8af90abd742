"""Reads the beginning of TLS: which server a client names, and whether a server asks for a second hello. Pure."""

from __future__ import annotations

from collections.abc import Iterator

HANDSHAKE = 22
CLIENT_HELLO = 1
SERVER_HELLO = 2
RECORD_BYTES = 1 << 14
HELLO_BYTES = 1 << 16  # the longest hello that we read; those with post-quantum keys have about 2,000 bytes
UNRECOGNISED_NAME = bytes((21, 3, 3, 0, 2, 2, 112))  # the alert that a client shows as "unrecognized name"

_SERVER_NAME = 0
_ENCRYPTED = {0xFE0D, 0xFFCE}  # Encrypted Client Hello, and the draft before it
_HELLO_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
_HELLO_HEAD = 4 + 2


class NotAcceptable(Exception):
    """A connection that we refuse; the text is a predicate of "the connection"."""


def of_record(head: bytes) -> tuple[int, int]:
    """Return type and length from a record's five-byte header."""
    kind, major, length = head[0], head[1], int.from_bytes(head[3:5], "big")
    if not is_kind(kind) or major != 3 or not 0 < length <= RECORD_BYTES + 256:
        raise NotAcceptable("is not TLS")
    return kind, length


def is_kind(kind: int) -> bool:
    return 20 <= kind <= 23


def is_whole(message: bytes) -> bool:
    """Decide whether the records so far hold a whole hello; nothing may follow it in the last one."""
    if message[:1] not in (b"", bytes((CLIENT_HELLO,))):
        raise NotAcceptable("does not begin with a hello of TLS")
    if len(message) < 4:
        return False
    length = 4 + int.from_bytes(message[1:4], "big")
    if length > HELLO_BYTES or len(message) > length:
        raise NotAcceptable("begins with a hello of TLS that is too long")
    return len(message) == length


def asks_again(message: bytes) -> bool | None:
    """Decide whether a server asks for a second hello; None: too early to say."""
    end = _HELLO_HEAD + len(_HELLO_RETRY)
    if message[:1] not in (b"", bytes((SERVER_HELLO,))):
        return False
    return None if len(message) < end else message[_HELLO_HEAD:end] == _HELLO_RETRY


def server_name(message: bytes) -> str:
    """Return the one name in a whole hello, in lower case and without a last dot."""
    try:
        extensions = list(_extensions(message))
    except IndexError:
        raise NotAcceptable("begins with a broken hello of TLS") from None
    if any(kind in _ENCRYPTED for kind, _ in extensions):
        raise NotAcceptable("hides in its hello which server it names (Encrypted Client Hello)")
    names = [data for kind, data in extensions if kind == _SERVER_NAME]
    if len(names) != 1:
        raise NotAcceptable("names no server in its hello (SNI)" if not names else "names several servers")
    entry = names[0]  # a list with one entry of the only type that exists
    length = len(entry) - 5
    if length < 1 or entry[:5] != bytes((*(length + 3).to_bytes(2, "big"), 0, *length.to_bytes(2, "big"))):
        raise NotAcceptable("names its server in a form that is not understood")
    return entry[5:].decode("latin-1").lower().removesuffix(".")


def _extensions(message: bytes) -> Iterator[tuple[int, bytes]]:
    at = 4 + 2 + 32
    for width in (1, 2, 1):  # session, ciphers, compression
        _, at = _counted(message, at, width)
    found, end = _counted(message, at, 2) if at < len(message) else (b"", at)
    if end != len(message):
        raise IndexError
    at = 0
    while at < len(found):
        data, after = _counted(found, at + 2, 2)
        yield int.from_bytes(found[at : at + 2], "big"), data
        at = after


def _counted(data: bytes, at: int, width: int) -> tuple[bytes, int]:
    """Read a value that follows its length; return it and its end."""
    start = at + width
    end = start + int.from_bytes(data[at:start], "big")
    if end > len(data) or start > len(data):
        raise IndexError
    return data[start:end], end
