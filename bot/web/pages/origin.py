"""Where a browser has found us, decided once for each request, and whether what it sends was sent from there."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

USUAL_PORTS = {"http": 80, "https": 443}


class At:
    """The application at the address that people know it by: behind a proxy a request tells neither scheme nor host.

    `alone`: nobody has business at any other; as long as it is being set up, the address may not lead here yet."""

    def __init__(self, app: ASGIApp, public_url: str, *, alone: bool = True) -> None:
        self._app = app
        known = urlsplit(public_url)
        leads_on = known.path.strip("/") != ""  # a place that sends browsers on to us, and is not where they find us
        self._scheme, self._host = _place(known) if public_url and not leads_on else ("", "")
        self._alone = alone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(self._seen(scope) if scope["type"] == "http" else scope, receive, send)

    def _seen(self, scope: Scope) -> Scope:
        headers = Headers(scope=scope)
        if self._host and (self._alone or headers.get("host") == self._host):
            others = [pair for pair in scope["headers"] if pair[0] != b"host"]
            return {**scope, "scheme": self._scheme, "headers": [(b"host", self._host.encode()), *others]}
        # No address is known: then a proxy's word that the browser's own connection is safe can only make it stricter.
        told = headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
        return {**scope, "scheme": "https"} if told == "https" else scope


def written(public_url: str | None) -> str:
    """The address that people know, as browsers write it; nothing where none is set."""
    if not public_url:
        return ""
    known = urlsplit(public_url)
    return "{}://{}{}".format(*_place(known), known.path.rstrip("/"))


def is_https(request: Request) -> bool:
    return request.url.scheme == "https"


def base(request: Request) -> str:
    """Where this browser has found us, and so will again."""
    return f"{request.url.scheme}://{request.headers.get('host', '')}"


def is_same(request: Request) -> bool:
    """Browsers say where a form was sent from; what says nothing is judged by what else it carries."""
    origin = request.headers.get("origin")
    return origin is None or origin.partition("://")[2] == request.headers.get("host")


def local(path: str) -> str:
    """A path of ours to go on to; anything that would lead elsewhere is the front page."""
    if not path.startswith("/") or path.startswith(("//", "/\\")) or len(path) > 500:
        return "/"
    return path if all("!" <= letter <= "~" and letter != "\\" for letter in path) else "/"


def _place(url: SplitResult) -> tuple[str, str]:
    """Scheme and host as browsers write them: small letters, and a port only where it is not the usual one."""
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname or ""
    usual = url.port is None or url.port == USUAL_PORTS[url.scheme]
    return url.scheme, host if usual else f"{host}:{url.port}"
