"""Encrypt what is stored: AES-256-GCM under a ring of keys, bound to the place of the ciphertext. Pure."""

from __future__ import annotations

import base64
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
    """The place of a ciphertext: moved anywhere else it does not decrypt."""

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
    """Keys, newest first: the first encrypts, all decrypt."""

    def __init__(self, keys: Sequence[Secret]) -> None:
        """Take the base64 of 32 bytes for each, as `settings` has checked."""
        raw = [base64.b64decode(key.reveal()) for key in keys]
        self._keys = {_id(key): key for key in raw}
        self.newest = _id(raw[0])

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self._keys)})"

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(self._keys)

    def seal(self, value: str, place: SecretPlace, *, under: str | None = None) -> str:
        """Return `v1.KEY.BASE64`; it differs each time."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        chosen = under or self.newest
        key = self._keys.get(chosen)
        if key is None:
            raise VaultError(f"{place} is to be encrypted with key {chosen}, which FORGEHAND_SECRET_KEY does not hold.")
        nonce = os.urandom(NONCE_BYTES)
        sealed = AESGCM(key).encrypt(nonce, value.encode(), place.bound())
        return f"{VERSION}.{chosen}.{base64.urlsafe_b64encode(nonce + sealed).decode()}"

    def open(self, ciphertext: str, place: SecretPlace) -> Secret:
        """Raise VaultError for a key that is not in the ring, another place, or a changed text."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key = self._keys.get(key_id(ciphertext))
        if key is None:
            raise VaultError(f"{place} is encrypted with a key that FORGEHAND_SECRET_KEY does not hold.")
        try:
            raw = base64.b64decode(ciphertext.rpartition(".")[2], altchars=b"-_", validate=True)
            return Secret(AESGCM(key).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], place.bound()).decode())
        except (InvalidTag, ValueError):  # bad base64 is a ValueError
            raise VaultError(f"The stored {place} was changed or moved, and cannot be read. Set it again.") from None


def key_id(ciphertext: str) -> str:
    """Name the key it was encrypted with; empty for what is no ciphertext of ours."""
    version, _, rest = ciphertext.partition(".")
    return rest.partition(".")[0] if version == VERSION else ""


def _id(key: bytes) -> str:
    return hashlib.sha256(b"forgehand key id|" + key).hexdigest()[:ID_LETTERS]
