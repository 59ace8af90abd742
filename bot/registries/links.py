"""Finds the addresses in an index and leads them to our route, in linear time, without reading the rest of it.

An address that we miss in a document made to deceive us stays what it is: unreachable from inside.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable

from bot.registries.addresses import below, encoded, plain_address, within
from bot.registries.shape import IndexPage, RegistryDialect, RegistryRefusal

Place = Callable[[str], str | None]
MOST_LINKS = 100_000
"""The largest projects have 20,000 files."""
NOWHERE = "about:invalid"
"""Stands where an index named an address that we do not fetch."""
_HREF = re.compile(rb"""\bhref[ \t\r\n]{0,8}=[ \t\r\n]{0,8}(?:"([^"<>]{0,4096})"|'([^'<>]{0,4096})')""", re.I)
_BASE = re.compile(
    rb"""<base[ \t\r\n]{1,8}href[ \t\r\n]{0,8}=[ \t\r\n]{0,8}["']([^"'<>]{1,2048})["'][^<>]{0,64}>""", re.I
)


def placed(dialect: RegistryDialect, page: IndexPage, link: str) -> str | None:
    """Return where a client finds a file that an index of this registry names; its fragment stays."""
    link, hash_sign, fragment = link.partition("#")
    url = plain_address(page.url, link, insecure=dialect.prefix.startswith("http:"))
    if url is None:
        return None
    path = below(dialect.prefix, url)
    target = dialect.admits("GET", path, "") if path else None
    if path and target and target.url == url and target.immutable:
        return page.inside + encoded(path) + hash_sign + fragment
    if within(dialect.prefix, url) and not url.partition("?")[0].endswith(dialect.files):
        return None
    return page.inside + page.signer.path(url) + hash_sign + fragment


def json_links(body: bytes, key: bytes, place: Place) -> bytes:
    """Rewrite the texts that stand under a key, wherever it is in the document."""
    left = MOST_LINKS
    pattern = re.compile(rb'"' + key + rb'"[ \t\r\n]{0,8}:[ \t\r\n]{0,8}("(?:[^"\\\x00-\x1f]|\\.){0,4096}")')

    def replaced(found: re.Match[bytes]) -> bytes:
        nonlocal left
        left = _less(left)
        try:
            link = json.loads(found[1])
        except ValueError:
            link = ""
        return b'"%s":%s' % (key, json.dumps(place(link) or NOWHERE).encode())

    return pattern.sub(replaced, body)


def html_links(body: bytes, place: Place) -> bytes:
    """Rewrite what the anchors of a page name."""
    left = MOST_LINKS

    def replaced(found: re.Match[bytes]) -> bytes:
        nonlocal left
        left = _less(left)
        link = html.unescape((found[1] or found[2] or b"").decode("latin-1"))
        return b'href="%s"' % html.escape(place(link) or NOWHERE).encode()

    return _HREF.sub(replaced, body)


def _less(left: int) -> int:
    if not left:
        raise RegistryRefusal(502, f"An index of the registry names more than {MOST_LINKS} files.")
    return left - 1


def base_of(body: bytes) -> str | None:
    """Return where an HTML page says that its links start."""
    found = _BASE.search(body[: 1 << 16])
    return html.unescape(found[1].decode("latin-1")) if found else None


def without_base(body: bytes) -> bytes:
    return _BASE.sub(b"", body, count=1)
