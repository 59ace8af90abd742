"""Signing in with GitHub: to its page and back, bound to the browser by a cookie for this one trip."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
import secrets
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bot.errors import GitHubRefused, TransientError, UserError
from bot.github import tokens
from bot.settings import GitHubSettings
from bot.web.pages import forms, origin, visitors
from bot.web.pages.frame import COMMON, Pages
from bot.web.pages.visitors import Visitors, cookie_name, set_cookie

log = logging.getLogger(__name__)

CALLBACK = "/oauth/callback"
TRIP = "forgehand_trip"
TRIP_SECONDS = 600.0
AT_ONCE = 8
NOT_SET_UP = (
    "Signing in is not set up: the GitHub App's client id and client secret are missing. Run `forgehand setup`, or set "
    "FORGEHAND_CLIENT_ID and FORGEHAND_CLIENT_SECRET from the App's settings page."
)
LOST = "This sign-in link has expired or belongs to another browser. Please sign in again."


class SignIn:
    def __init__(self, pages: Pages, people: Visitors, github: GitHubSettings, public_url: str | None) -> None:
        self._pages = pages
        self._people = people
        self._github = github
        self._known_at = origin.written(public_url)
        self._room = asyncio.Semaphore(AT_ONCE)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/sign-in", self._offer),
            Route("/sign-in/github", self._leave),
            Route(CALLBACK, self._back),
            Route("/sign-out", self._out, methods=["POST"]),
        ]

    @property
    def _ready(self) -> bool:
        return bool(self._github.client_id and self._github.client_secret)

    def page(self, next_: str, *, wrong: str = "", status: int = 200) -> Response:
        way = f"/sign-in/github?{urlencode({'next': origin.local(next_)})}" if self._ready else ""
        wrong = wrong or ("" if self._ready else NOT_SET_UP)
        return self._pages.render("sign_in.html", status=status, title="Sign in", visitor=None, way=way, wrong=wrong)

    async def _offer(self, request: Request) -> Response:
        return self.page(request.query_params.get("next", "/"))

    async def _leave(self, request: Request) -> Response:
        if not self._ready:
            return self.page("/", status=503)
        state, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "client_id": self._github.client_id,
            "redirect_uri": self._redirect_uri(request),
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        response = RedirectResponse(f"{self._github.url}/login/oauth/authorize?{urlencode(query)}", 302, COMMON)
        trip = f"{state} {verifier} {origin.local(request.query_params.get('next', '/'))}"
        packed = base64.urlsafe_b64encode(trip.encode()).decode()
        set_cookie(request, response, TRIP, packed, TRIP_SECONDS)
        return response

    async def _back(self, request: Request) -> Response:
        """Accept only the browser that left; the trip is over however it ends."""
        state, verifier, next_ = _trip(request)
        if not state or not hmac.compare_digest(state.encode(), request.query_params.get("state", "").encode()):
            response = self.page("/", wrong=LOST, status=400)
        elif request.query_params.get("error"):
            response = self.page(next_, wrong="You did not allow GitHub to say who you are.", status=403)
        else:
            response = await self._enter(request, verifier, next_)
        set_cookie(request, response, TRIP, "", 0)
        return response

    async def _enter(self, request: Request, verifier: str, next_: str) -> Response:
        code = request.query_params.get("code", "")
        try:
            async with self._room:
                person = await tokens.person_for(self._github, code, self._redirect_uri(request), verifier)
        except GitHubRefused as refused:
            log.warning("nobody was signed in", extra={"error": str(refused)})
            return self.page(next_, wrong=f"GitHub did not sign you in: {refused.message}.", status=403)
        except TransientError as error:
            log.warning("nobody was signed in", extra={"error": str(error)})
            return self.page(next_, wrong="GitHub did not answer. Please try again in a minute.", status=503)
        if not person.is_human:
            return self.page(next_, wrong="Only people can sign in.", status=403)
        response = RedirectResponse(next_, 303, COMMON)
        await self._people.begin(request, response, person)
        return response

    async def _out(self, request: Request) -> Response:
        visitor = await self._people.of(request)
        response: Response = RedirectResponse("/sign-in", 303, COMMON)
        if visitor is None:
            return response
        try:
            given = (await forms.read(request)).get("csrf", "")
        except UserError:
            given = ""
        if not visitors.is_theirs(request, visitor, given):
            return self.page("/", wrong="This form has expired. You are still signed in.", status=403)
        await self._people.end(request, response, visitor)
        return response

    def _redirect_uri(self, request: Request) -> str:
        """Prefer the public address, because the App has this URI registered."""
        return f"{self._known_at or origin.base(request)}{CALLBACK}"


def _trip(request: Request) -> tuple[str, str, str]:
    """Return state, verifier and the next page; empty if the cookie is not ours."""
    try:
        packed = base64.urlsafe_b64decode(request.cookies.get(cookie_name(TRIP, request), ""))
        state, verifier, next_ = packed.decode().split(" ")
    except ValueError:
        return "", "", "/"
    return state, verifier, origin.local(next_)
