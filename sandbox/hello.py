"""Reads the beginning of TLS: which server a client names, and whether a server asks it to begin once more. Pure."""

from __future__ import annotations

from collections.abc import Iterator

HANDSHAKE = 22
CLIENT_HELLO = 1
SERVER_HELLO = 2
RECORD_BYTES = 1 << 14
HELLO_BYTES = 1 << 16
"""The longest that is read: those with keys that quantum computers cannot break have about 2,000."""
UNRECOGNISED_NAME = bytes((21, 3, 3, 0, 2, 2, 112))  # the alert that a client shows as "unrecognized name"

_SERVER_NAME = 0
_ENCRYPTED = {0xFE0D, 0xFFCE}  # Encrypted Client Hello, and the draft before it
_HELLO_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
_HELLO_HEAD = 4 + 2


class NotAcceptable(Exception):
    """The words say why, after `the connection`."""


def of_record(head: bytes) -> tuple[int, int]:
    """Type and length, from the five bytes before a record."""
    kind, major, length = head[0], head[1], int.from_bytes(head[3:5], "big")
    if not is_kind(kind) or major != 3 or not 0 < length <= RECORD_BYTES + 256:
        raise NotAcceptable("is not TLS")
    return kind, length


def is_kind(kind: int) -> bool:
    return 20 <= kind <= 23


def is_whole(message: bytes) -> bool:
    """Whether a hello is all there, out of the records so far; nothing may come behind it in the last one."""
    if message[:1] not in (b"", bytes((CLIENT_HELLO,))):
        raise NotAcceptable("does not begin with a hello of TLS")
    if len(message) < 4:
        return False
    length = 4 + int.from_bytes(message[1:4], "big")
    if length > HELLO_BYTES or len(message) > length:
        raise NotAcceptable("begins with a hello of TLS that is too long")
    return len(message) == length


def asks_again(message: bytes) -> bool | None:
    """Whether a server wants a second hello; None as long as that cannot be told."""
    end = _HELLO_HEAD + len(_HELLO_RETRY)
    if message[:1] not in (b"", bytes((SERVER_HELLO,))):
        return False
    return None if len(message) < end else message[_HELLO_HEAD:end] == _HELLO_RETRY


def server_name(message: bytes) -> str:
    """The one name in a whole hello, in lower case and without a last dot."""
    try:
        extensions = list(_extensions(message))
    except IndexError:
        raise NotAcceptable("begins with a broken hello of TLS") from None
    if any(kind in _ENCRYPTED for kind, _ in extensions):
        raise NotAcceptable("hides in its hello which server it names (Encrypted Client Hello)")
    names = [data for kind, data in extensions if kind == _SERVER_NAME]
    if len(names) != 1:
        raise NotAcceptable("names no server in its hello (SNI)" if not names else "names several servers")
    return _host(names[0])


def _host(data: bytes) -> str:
    """A list of one entry of the one type that there is."""
    length = len(data) - 5
    if length < 1 or data[:5] != bytes((*(length + 3).to_bytes(2, "big"), 0, *length.to_bytes(2, "big"))):
        raise NotAcceptable("names its server in a form that is not understood")
    return data[5:].decode("latin-1").lower().removesuffix(".")


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
    """What follows its own length, and where it ends."""
    start = at + width
    end = start + int.from_bytes(data[at:start], "big")
    if end > len(data) or start > len(data):
        raise IndexError
    return data[start:end], end
