"""First messages of TLS: those of a real client, and changed ones."""

from __future__ import annotations

import contextlib
import ssl

RETRY = bytes.fromhex(
    "160303003802000034"
    + "0303cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c"
    + "00130100000c002b00020304003300020018"
)
"""A server's request for another hello."""


def record(payload: bytes, kind: int = 22) -> bytes:
    return bytes((kind, 3, 1)) + len(payload).to_bytes(2, "big") + payload


def message(name: str | None) -> bytes:
    """Return the hello of Python's own client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    out = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()[5:]


def hello(name: str | None) -> bytes:
    return record(message(name))


def split(payload: bytes, size: int) -> bytes:
    """Split a message into many records."""
    return b"".join(record(payload[at : at + size]) for at in range(0, len(payload), size))


def extended(name: str | None, kind: int, data: bytes) -> bytes:
    """Return a hello with one more extension at its end."""
    body = bytearray(message(name)[4:])
    at = 34 + 1 + body[34]
    at += 2 + int.from_bytes(body[at : at + 2], "big")
    at += 1 + body[at]
    length = int.from_bytes(body[at : at + 2], "big") + 4 + len(data)
    body[at : at + 2] = length.to_bytes(2, "big")
    body += kind.to_bytes(2, "big") + len(data).to_bytes(2, "big") + data
    return b"\x01" + len(body).to_bytes(3, "big") + bytes(body)


def named(*names: bytes, kind: int = 0) -> bytes:
    """Return the data of a server_name extension."""
    entries = b"".join(bytes((kind,)) + len(one).to_bytes(2, "big") + one for one in names)
    return len(entries).to_bytes(2, "big") + entries
