"""Where a browser has found us, and whether what it sends was sent from there."""

from __future__ import annotations

from starlette.requests import Request


def is_https(request: Request) -> bool:
    """Also behind a proxy that ends TLS."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", "").lower())


def base(request: Request) -> str:
    """Where this browser has found us, and so will again."""
    return f"{'https' if is_https(request) else 'http'}://{request.headers.get('host', '')}"


def is_same(request: Request) -> bool:
    """Browsers say where a form was sent from; what says nothing is judged by what else it carries."""
    origin = request.headers.get("origin")
    return origin is None or origin.partition("://")[2] == request.headers.get("host")


def local(path: str) -> str:
    """A path of ours to go on to; anything that would lead elsewhere is the front page."""
    if not path.startswith("/") or path.startswith(("//", "/\\")) or len(path) > 500:
        return "/"
    return path if all("!" <= letter <= "~" and letter != "\\" for letter in path) else "/"
