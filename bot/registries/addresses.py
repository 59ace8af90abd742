"""Reads paths and addresses strictly: what it returns is written in one way only."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes, urljoin, urlsplit

from bot.errors import UserError

MOST_OF_A_PATH = 2048
_SEGMENT = re.compile(r"[A-Za-z0-9._~@+!,=():$*'& -]+")
_QUERY = re.compile(r"(?:[A-Za-z0-9._~@+!,=():$*'&/?-]|%[0-9A-Fa-f]{2}){0,2048}")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::[0-9]{1,5})?|\[[0-9a-f:.]{2,45}\](?::[0-9]{1,5})?")


class BadRegistryAddress(UserError):
    """We could not tell what lies below it."""


def canonical(path: str) -> str | None:
    """Decode a path once; None if it could mean something else to another server."""
    if len(path) > MOST_OF_A_PATH:
        return None
    decoded = unquote_to_bytes(path).decode("latin-1")
    kept, slash = (decoded[:-1], "/") if decoded.endswith("/") else (decoded, "")
    segments = kept.split("/") if kept else []
    if slash and not segments:
        return None
    if any(one in (".", "..") or not _SEGMENT.fullmatch(one) for one in segments):
        return None
    return kept + slash


def encoded(path: str) -> str:
    """Encode a canonical path; a plus sign as well, because it means different things to different servers."""
    return path.replace("+", "%2B").replace(" ", "%20")


def plain_query(query: str) -> str | None:
    return query if _QUERY.fullmatch(query) else None


def plain_prefix(address: str) -> str:
    """Write an owner's address as addresses of files are written here, so that the two can be compared."""
    scheme, _, rest = address.partition("://")
    host, _, rest = rest.partition("/")
    host, path = _plain_host(scheme, host), canonical(rest.strip("/"))
    if path is None or not _HOST.fullmatch(host):
        raise BadRegistryAddress(
            "The address of a registry must be a plain one, such as https://host/path/: without user name or password, "
            "dot segments, doubled slashes or odd characters."
        )
    return f"{scheme}://{host}/" + (f"{encoded(path)}/" if path else "")


def _plain_host(scheme: str, host: str) -> str:
    return host.lower().removesuffix({"https": ":443", "http": ":80"}.get(scheme, " "))


def within(prefix: str, url: str) -> bool:
    """Say whether a plain address lies below a prefix, which ends with a slash."""
    return url.startswith(prefix)


def below(prefix: str, url: str) -> str | None:
    """Return the canonical path of a plain address without query below a prefix."""
    if not within(prefix, url) or "?" in url:
        return None
    return canonical(url[len(prefix) :])


def plain_address(base: str, link: str, *, insecure: bool) -> str | None:
    """Resolve a link of an index; None unless it is a plain HTTPS address (HTTP too, if `insecure`)."""
    if len(link) > MOST_OF_A_PATH or not link.isascii() or not link.isprintable() or "\\" in link or " " in link:
        return None
    try:
        parts = urlsplit(urljoin(base, link))
        host = _plain_host(parts.scheme, parts.netloc)
        _ = parts.port
    except ValueError:
        return None
    if parts.scheme not in (("https", "http") if insecure else ("https",)) or not _HOST.fullmatch(host):
        return None
    path, query = canonical(parts.path.removeprefix("/")), plain_query(parts.query)
    if not path or path.endswith("/") or query is None:
        return None
    return f"{parts.scheme}://{host}/{encoded(path)}" + (f"?{query}" if query else "")
