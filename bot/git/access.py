"""How a remote is reached: its address and the token for this moment, which travels by environment header only."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from bot.settings import LOOPBACK, Secret


@dataclass(frozen=True)
class RemoteAccess:
    """One remote repository; the address never holds a user or a password."""

    url: str
    token: Secret

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.username is not None or parts.password is not None or "@" in parts.netloc:
            raise ValueError("the address of a remote must not carry credentials")
        if any(ord(character) < 33 or ord(character) == 127 for character in self.url):
            raise ValueError("the address of a remote must not hold blanks or control characters")
        plain = parts.scheme == "http" and parts.hostname in LOOPBACK
        if not (parts.scheme in ("https", "file") or plain):
            raise ValueError("a remote is reached by https (or http on loopback, or a file address)")

    @property
    def scheme(self) -> str:
        return urlsplit(self.url).scheme

    def header(self) -> str:
        """The Authorization header that GitHub's git server takes."""
        return f"Authorization: Basic {self._basic()}"

    def redact(self, text: str) -> str:
        """The same text without the token in any form in which git or curl could repeat it."""
        token = self.token.reveal()
        for form in (self._basic(), token, quote(token, safe="")):
            text = text.replace(form, "[redacted]") if form else text
        return text

    def _basic(self) -> str:
        return base64.b64encode(f"x-access-token:{self.token.reveal()}".encode()).decode()
