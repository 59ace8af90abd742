"""Decides for each request under which address the browser found us, and whether its form was sent from there."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

USUAL_PORTS = {"http": 80, "https": 443}


class At:
    """Gives each request the public address, because behind a proxy it shows neither the scheme nor the host.

    `alone` makes that address the only one. During setup it may not lead here yet."""

    def __init__(self, app: ASGIApp, public_url: str, *, alone: bool = True) -> None:
        self._app = app
        known = urlsplit(public_url)
        leads_on = known.path.strip("/") != ""  # it only sends browsers on to us
        self._scheme, self._host = _place(known) if public_url and not leads_on else ("", "")
        self._alone = alone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(self._seen(scope) if scope["type"] == "http" else scope, receive, send)

    def _seen(self, scope: Scope) -> Scope:
        headers = Headers(scope=scope)
        if self._host and (self._alone or headers.get("host") == self._host):
            others = [pair for pair in scope["headers"] if pair[0] != b"host"]
            return {**scope, "scheme": self._scheme, "headers": [(b"host", self._host.encode()), *others]}
        # Without a known address, a proxy may state that the browser uses https: that can only make us stricter.
        proto = headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
        return {**scope, "scheme": "https"} if proto == "https" else scope


def written(public_url: str | None) -> str:
    """Write the public address as browsers do; empty if none is set."""
    if not public_url:
        return ""
    known = urlsplit(public_url)
    return "{}://{}{}".format(*_place(known), known.path.rstrip("/"))


def is_https(request: Request) -> bool:
    return request.url.scheme == "https"


def base(request: Request) -> str:
    """Return the address under which this browser found us."""
    return f"{request.url.scheme}://{request.headers.get('host', '')}"


def is_same(request: Request) -> bool:
    """Check the Origin header. A request without one is judged by its other credentials."""
    origin = request.headers.get("origin")
    return origin is None or origin.partition("://")[2] == request.headers.get("host")


def local(path: str) -> str:
    """Return the path if it stays on this site, else the front page."""
    if not path.startswith("/") or path.startswith(("//", "/\\")) or len(path) > 500:
        return "/"
    return path if all("!" <= letter <= "~" and letter != "\\" for letter in path) else "/"


def _place(url: SplitResult) -> tuple[str, str]:
    """Write scheme and host as browsers do: in lower case, and with a port only if it is unusual."""
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname or ""
    usual = url.port is None or url.port == USUAL_PORTS[url.scheme]
    return url.scheme, host if usual else f"{host}:{url.port}"
