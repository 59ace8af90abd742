"""Lets the two ends of a tunnel recognise each other: each proves that it has the key, which never travels there."""

from __future__ import annotations

import hashlib
import hmac

HOST, INSIDE = "host", "inside"


def proof(key: bytes, side: str, nonces: str) -> str:
    return hmac.new(key, f"forgehand {side} {nonces}".encode(), hashlib.sha256).hexdigest()


def holds(key: bytes, side: str, nonces: str, given: str) -> bool:
    return bool(key) and hmac.compare_digest(proof(key, side, nonces).encode(), given.encode("utf-8", "replace"))
