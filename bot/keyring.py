"""Encrypts what is stored: AES-256-GCM under a ring of keys, bound to the place where the ciphertext stands. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from bot.errors import VaultError
from bot.settings import Secret

VERSION = "v1"
NONCE_BYTES = 12
ID_LETTERS = 8


@dataclass(frozen=True)
class SecretPlace:
    """Where a ciphertext belongs: moved anywhere else it does not decrypt."""

    table: str
    column: str
    installation: int
    row: str

    def __post_init__(self) -> None:
        if any("|" in part for part in (self.table, self.column, self.row)):
            raise ValueError("a place's names must not hold `|`: two places could look the same")

    def __str__(self) -> str:
        return f"{self.row} (installation {self.installation})" if self.installation else self.row

    def bound(self) -> bytes:
        return f"{self.table}|{self.column}|{self.installation}|{self.row}".encode()


class KeyRing:
    """Newest first: what is encrypted is encrypted with the first, what is read may be of any."""

    def __init__(self, keys: Sequence[Secret]) -> None:
        """Each the base64 of 32 bytes, as `settings` has checked."""
        raw = [base64.b64decode(key.reveal()) for key in keys]
        self._keys = {_id(key): key for key in raw}
        self.newest = _id(raw[0])

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self._keys)})"

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(self._keys)

    def seal(self, value: str, place: SecretPlace, *, under: str | None = None) -> str:
        """`v1.KEY.BASE64`; two of the same value differ."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        chosen = under or self.newest
        key = self._keys.get(chosen)
        if key is None:
            raise VaultError(f"{place} is to be encrypted with key {chosen}, which FORGEHAND_SECRET_KEY does not hold.")
        nonce = os.urandom(NONCE_BYTES)
        sealed = AESGCM(key).encrypt(nonce, value.encode(), place.bound())
        return f"{VERSION}.{chosen}.{base64.urlsafe_b64encode(nonce + sealed).decode()}"

    def open(self, ciphertext: str, place: SecretPlace) -> Secret:
        """Raises VaultError for a key that is not in the ring, another place, or a changed text."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key, raw = self._keys.get(key_id(ciphertext)), _raw(ciphertext)
        if key is None:
            raise VaultError(f"{place} is encrypted with a key that FORGEHAND_SECRET_KEY does not hold.")
        try:
            return Secret(AESGCM(key).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], place.bound()).decode())
        except (InvalidTag, ValueError):
            raise VaultError(
                f"What is stored as {place} was changed or moved, and cannot be read. Set it anew."
            ) from None


def key_id(ciphertext: str) -> str:
    """Names the key it was encrypted with; empty for what is no ciphertext of ours."""
    version, _, rest = ciphertext.partition(".")
    return rest.partition(".")[0] if version == VERSION else ""


def _id(key: bytes) -> str:
    return hashlib.sha256(b"forgehand key id|" + key).hexdigest()[:ID_LETTERS]


def _raw(ciphertext: str) -> bytes:
    try:
        raw = base64.b64decode(ciphertext.rpartition(".")[2], altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""
    return raw
