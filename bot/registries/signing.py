"""Signs the addresses that indexes name, so that nobody inside can choose them.

An index may name a file on another host. In the index that goes inside, the file is at

    <route>/-/at/<signature>/https/<host>/<path>

The signature covers the whole address and this registry's own key: only what an index named can be asked for. The last
segment stays, because clients read names and versions from it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from bot.registries.addresses import encoded

SIGNED = "-/at/"
_SCHEMES = ("https", "http")
_BESIDE = ".metadata"
"""PEP 658: a client asks for a wheel's metadata by adding this to the wheel's address."""


class LinkSigner:
    """Holds one registry's key. Another registry, account or address has another one."""

    def __init__(self, key: bytes, *about: str) -> None:
        self._key = hmac.digest(key, "\n".join(("registry", *about)).encode(), hashlib.sha256)

    def sign(self, text: str) -> str:
        digest = hmac.digest(self._key, text.encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(digest[:18]).decode()

    def holds(self, signature: str, text: str) -> bool:
        return hmac.compare_digest(self.sign(text), signature)

    def path(self, url: str) -> str:
        """Return the signed path of a plain address, encoded, with its query."""
        scheme, _, rest = url.partition("://")
        return f"{SIGNED}{self.sign(url)}/{scheme}/{rest}"

    def address(self, path: str, query: str) -> str | None:
        """Return the address behind a canonical path that we have signed; otherwise None."""
        signature, _, rest = path.removeprefix(SIGNED).partition("/")
        scheme, _, place = rest.partition("/")
        if scheme not in _SCHEMES or not place:
            return None
        url = f"{scheme}://{encoded(place)}" + (f"?{query}" if query else "")
        if self.holds(signature, url):
            return url
        if not query and url.endswith(_BESIDE) and self.holds(signature, url.removesuffix(_BESIDE)):
            return url
        return None
