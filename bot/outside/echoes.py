"""Finds a credential in an answer: some services repeat what they were sent, or write it into a client's config."""

from __future__ import annotations

import base64
import binascii
import html
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from urllib.parse import quote

LEAST = 8
"""A shorter text is looked for only as it is: in another writing it would be found in everything."""


class CredentialRepeated(Exception):
    """An answer holds the credential of its request."""


def parts(value: str) -> tuple[str, ...]:
    """Return a header's value, what follows its scheme and, of a pair in Basic, the password."""
    scheme, _, rest = value.partition(" ")
    found = [value, rest]
    if scheme == "Basic":
        with suppress(binascii.Error):
            found.append(base64.b64decode(rest).decode("utf-8", "replace").partition(":")[2])
    return tuple(dict.fromkeys(one for one in found if one))


def writings(secret: str) -> tuple[bytes, ...]:
    """Return the ways in which programs write a text: as it is, escaped, and in the middle of base64 or hex."""
    plain = secret.encode()
    found = {plain, json.dumps(secret)[1:-1].encode(), json.dumps(secret, ensure_ascii=False)[1:-1].encode()}
    if len(plain) >= LEAST:
        found |= {quote(secret).encode(), quote(secret, safe="").encode(), html.escape(secret).encode()}
        found |= {plain.hex().encode(), plain.hex().upper().encode()}
        for before in range(3):
            # the first and the last letters depend on what stands beside the secret
            coded = base64.b64encode(bytes(before) + plain)
            inner = coded[(before * 8 + 5) // 6 : (before + len(plain)) * 8 // 6]
            found |= {inner, inner.translate(bytes.maketrans(b"+/", b"-_"))}
    return tuple(sorted(found, key=len, reverse=True))


async def without_echo(chunks: AsyncIterator[bytes], forbidden: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Pass a body on, and raise CredentialRepeated before any of these texts has begun to leave."""
    texts = tuple(forbidden)
    kept = max(map(len, texts), default=1) - 1
    held = b""
    async for chunk in chunks:
        held += chunk
        if any(one in held for one in texts):
            raise CredentialRepeated
        if len(held) > kept:
            yield held[: len(held) - kept]
            held = held[len(held) - kept :]
    if held:
        yield held
