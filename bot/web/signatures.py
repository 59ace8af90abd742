"""Whether a body was signed with one of the webhook secrets."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence

from bot.settings import Secret

_FORM = re.compile(rb"sha256=([0-9a-fA-F]{64})")


class Signatures:
    """Several secrets count while one replaces another."""

    def __init__(self, secrets: Sequence[Secret]) -> None:
        self._keys = tuple(secret.reveal().encode() for secret in secrets if secret.reveal())

    def __repr__(self) -> str:
        return f"Signatures({len(self._keys)} secrets)"

    def match(self, claimed: bytes, body: bytes | bytearray) -> bool:
        found = [hmac.compare_digest(claimed, hmac.digest(key, body, "sha256")) for key in self._keys]
        return any(found)


def claimed(headers: Sequence[bytes]) -> bytes | None:
    """The digest in the one header that there must be, or None."""
    if len(headers) != 1:
        return None
    form = _FORM.fullmatch(headers[0])
    return bytes.fromhex(form.group(1).decode()) if form else None


def of(secret: Secret, body: bytes) -> str:
    """The header's value, as GitHub makes it."""
    return f"sha256={hmac.digest(secret.reveal().encode(), body, 'sha256').hex()}"
