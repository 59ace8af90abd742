"""Files that people attach to their texts: a lasting address for browsers, and a signed one for some minutes.

As on GitHub Enterprise Server, both are on the same host, and no token of the API opens the lasting one.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import uuid
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bot.simulation.github.state import Attachment, Repository, State

LIFETIME = 300
_KEY = b"the key of the host that keeps uploads"
_LASTING = "/user-attachments/assets/"


def attach(state: State, repo: Repository, content: bytes, media_type: str) -> str:
    """Store a file, and return its address for the uploader's text."""
    found = Attachment(str(uuid.uuid4()), repo, content, media_type)
    state.attachments[found.id] = found
    return f"{state.url}{_LASTING}{found.id}"


def signed(state: State, html: str) -> str:
    """Give each upload in a rendered text an address that opens without a sign-in."""
    pattern = re.compile(rf'(?<=src="){re.escape(state.url + _LASTING)}([0-9a-f-]{{36}})(?=")')
    return pattern.sub(lambda match: _signed(state, match[1]) or match[0], html)


def _signed(state: State, number: str) -> str | None:
    found = state.attachments.get(number)
    if found is None:
        return None
    until = int(state.clock()) + LIFETIME
    return f"{state.url}/media/user/{found.id}?jwt={until}.{_signature(found.id, until)}"


def _signature(number: str, until: int) -> str:
    return hmac.new(_KEY, f"{number}.{until}".encode(), hashlib.sha256).hexdigest()


def routes(state: State) -> Sequence[BaseRoute]:
    async def lasting(request: Request) -> Response:
        """Answer for a private repository only if a browser has signed in."""
        found = state.attachments.get(request.path_params["number"])
        target = _signed(state, found.id) if found and not found.repo.private else None
        return RedirectResponse(target, 302) if target else Response("Not Found", 404)

    async def media(request: Request) -> Response:
        number = request.path_params["number"]
        until, _, signature = request.query_params.get("jwt", "").partition(".")
        found = state.attachments.get(number)
        if found is None or not until.isdecimal() or int(until) <= state.clock():
            return Response("Not Found", 404)
        if not hmac.compare_digest(signature, _signature(number, int(until))):
            return Response("Not Found", 404)
        return Response(found.content, media_type=found.media_type)

    return [Route(_LASTING + "{number}", lasting), Route("/media/user/{number}", media)]
