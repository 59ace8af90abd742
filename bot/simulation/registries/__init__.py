"""Package registries on loopback: npm, PyPI, Cargo, Go, Maven and plain files.

They demand a credential, refuse what real ones refuse, and keep what was put into them. PyPI's files and Cargo's crates
are on another host, as in public. `requests` says who asked for what; `leaks` names requests that brought a credential
to a host that must not see it.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from bot.simulation.loopback import serving
from bot.simulation.registries import cargo, go, maven, npm, pypi
from bot.simulation.registries.shelf import Shelf, StoredPackage

ANSWERS: dict[str, Callable[[Shelf, Request, str], Response]] = {
    "npm": npm.answer,
    "pypi": pypi.answer,
    "cargo": cargo.answer,
    "go": go.answer,
    "maven": maven.answer,
}
CHALLENGES = {"pypi": 'Basic realm="packages"', "cargo": "Cargo", "maven": 'Basic realm="packages"'}
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"]
NEIGHBOUR = "what only the registry's own people may read"
"""Lies outside every registry's prefix, behind the same credential."""


@dataclass(frozen=True)
class SeenRequest:
    method: str
    path: str
    query: str
    headers: dict[str, str]
    files_host: bool


@dataclass
class SimulatedRegistries:
    """Use `async with SimulatedRegistries.running(authorisation="Bearer …") as registries:`."""

    authorisation: str
    """The one header that private registries accept."""
    url: str = ""
    files_url: str = ""
    requests: list[SeenRequest] = field(default_factory=list)
    redirects: dict[str, str] = field(default_factory=dict)
    """Other addresses, by the paths that lead there."""
    documents: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """Answers with their types, that stand in for a registry's own: an index made by someone hostile."""
    statuses: dict[str, int] = field(default_factory=dict)
    """What paths answer instead: a registry in trouble."""
    held: dict[str, asyncio.Event] = field(default_factory=dict)
    """Paths that answer only after an event."""
    delay_seconds: float = 0.0
    """How far away they are: each answer comes so much later."""
    bytes_per_second: float = math.inf
    """How fast each answer comes."""
    shelves: dict[str, Shelf] = field(default_factory=dict)

    @classmethod
    @asynccontextmanager
    async def running(cls, authorisation: str, port: int = 0) -> AsyncIterator[Self]:
        one = cls(authorisation)
        async with serving(one._app(one._answer), port) as own, serving(one._app(one._file)) as files:
            one.url, one.files_url = f"http://127.0.0.1:{own}", f"http://127.0.0.1:{files}"
            yield one

    def address(self, kind: str, *, public: bool = False) -> str:
        """Return what an owner stores; a public registry asks for no credential."""
        place = f"{self.url}/{'public' if public else 'private'}/{kind}/"
        return place + {"pypi": "simple/", "cargo": "index/"}.get(kind, "")

    def shelf(self, kind: str, *, public: bool = False) -> Shelf:
        name = f"{'public' if public else 'private'}/{kind}"
        return self.shelves.setdefault(name, Shelf(f"{self.url}/{name}", f"{self.files_url}/{name}"))

    def asked(self, part: str) -> list[SeenRequest]:
        return [one for one in self.requests if part in one.path]

    @property
    def leaks(self) -> list[SeenRequest]:
        secret = self.authorisation.partition(" ")[2] or self.authorisation
        return [one for one in self.requests if one.files_host and secret in "".join(one.headers.values())]

    def _app(self, answer: Callable[[Request], Response]) -> Starlette:
        async def answered(request: Request) -> Response:
            response = answer(request)
            if event := self.held.get(request.url.path):
                await event.wait()
            size = 0 if isinstance(response, StreamingResponse) else len(response.body)
            if wait := self.delay_seconds + size / self.bytes_per_second:
                await asyncio.sleep(wait)
            return response

        return Starlette(routes=[Route("/{path:path}", answered, methods=METHODS)])

    def _note(self, request: Request, *, files_host: bool) -> None:
        sent = request.scope["raw_path"].decode("latin-1").partition("?")[0]
        self.requests.append(
            SeenRequest(request.method, sent, request.url.query, dict(request.headers), files_host=files_host)
        )

    def _answer(self, request: Request) -> Response:
        self._note(request, files_host=False)
        path = request.url.path
        public, _, rest = path.removeprefix("/").partition("/")
        kind, _, rest = rest.partition("/")
        if public != "public" and request.headers.get("authorization") != self.authorisation:
            return Response("log in first", 401, headers={"WWW-Authenticate": CHALLENGES.get(kind, "Bearer")})
        if path in self.statuses:
            return Response("trouble", self.statuses[path])
        if path in self.redirects:
            return RedirectResponse(self.redirects[path], 302)
        if path in self.documents:
            content_type, body = self.documents[path]
            return Response(body, media_type=content_type)
        if public not in ("public", "private"):
            return Response(NEIGHBOUR)
        shelf = self.shelf(kind, public=public == "public")
        if kind in ANSWERS:
            return _with_etag(request, ANSWERS[kind](shelf, request, rest))
        return self._stored(request, shelf.plain.get(rest))

    def _file(self, request: Request) -> Response:
        self._note(request, files_host=True)
        public, _, rest = request.url.path.removeprefix("/").partition("/")
        kind, _, rest = rest.partition("/")
        if f"{public}/{kind}" not in self.shelves:
            return Response("no such file", 404)
        return self._stored(request, self.shelves[f"{public}/{kind}"].file(rest.rpartition("/")[2]))

    def _stored(self, request: Request, found: StoredPackage | bytes | int | None) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response("files are only read", 405)
        if found is None:
            return Response("no such file", 404)
        if isinstance(found, int):
            return StreamingResponse(_generated(found), headers={"Content-Length": str(found)})
        data = found if isinstance(found, bytes) else found.data
        return _with_etag(request, Response(data, media_type="application/octet-stream"))


async def _generated(size: int) -> AsyncIterator[bytes]:
    """Yield a large file that nobody holds in memory."""
    block = bytes(range(256)) * 256
    for at in range(0, size, len(block)):
        yield block[: size - at]


def _with_etag(request: Request, response: Response) -> Response:
    if response.status_code != 200 or isinstance(response, StreamingResponse):
        return response
    etag = f'"{hashlib.sha256(response.body).hexdigest()[:16]}"'
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers={"ETag": etag})
    response.headers["ETag"] = etag
    return response
