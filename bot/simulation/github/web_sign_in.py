"""GitHub's page on which a person tells an App who they are, and the exchange of the code."""

from __future__ import annotations

import base64
import hashlib
import secrets
from html import escape
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bot.simulation.github.accounts import App, SignIn
from bot.simulation.github.state import State
from bot.simulation.github.web_apps import form, page

CODE_SECONDS = 600.0
TOKEN_SECONDS = 8 * 3600.0
LOOPBACK = ("127.0.0.1", "::1", "localhost")
FIELDS = ("client_id", "redirect_uri", "state", "code_challenge", "code_challenge_method")


def routes(state: State) -> list[BaseRoute]:
    """The sign-in pages. A form asks who is at the browser, instead of a password."""
    pages = _Pages(state)
    return [
        Route("/login/oauth/authorize", pages.ask, methods=["GET"]),
        Route("/login/oauth/authorize", pages.agree, methods=["POST"]),
        Route("/login/oauth/access_token", pages.exchange, methods=["POST"]),
    ]


class _Pages:
    def __init__(self, state: State) -> None:
        self._state = state

    async def ask(self, request: Request) -> Response:
        asked = {name: request.query_params.get(name, "") for name in FIELDS}
        app = self._app(asked["client_id"])
        if app is None:
            return page("Not found", "", 404)
        if not _is_registered(app, asked["redirect_uri"]):
            return page("The redirect_uri is not associated with this application.", "", 400)
        hidden = "".join(f'<input type="hidden" name="{name}" value="{escape(asked[name])}">' for name in FIELDS)
        known = escape(self._state.at_the_browser)
        who = f'<label>Username <input name="login" value="{known}"></label>'
        agree = f"<button>Authorize {escape(app.slug)}</button>"
        return page(f"Sign in to {app.slug}", f'<form method="post">{hidden}{who}{agree}</form>')

    async def agree(self, request: Request) -> Response:
        fields = await form(request)
        app, account = self._app(fields["client_id"]), self._state.account(fields["login"])
        if app is None or account is None or not _is_registered(app, fields["redirect_uri"]):
            return page("Not found", "", 404)
        if fields.get("code_challenge") and fields.get("code_challenge_method") != "S256":
            return page("code_challenge_method must be S256", "", 400)
        code, uri, ends_at = secrets.token_hex(10), fields["redirect_uri"], self._state.clock() + CODE_SECONDS
        self._state.sign_ins[code] = SignIn(account, app, uri, fields.get("code_challenge", ""), ends_at)
        return RedirectResponse(f"{uri}?{urlencode({'code': code, 'state': fields['state']})}", 302)

    async def exchange(self, request: Request) -> Response:
        """Exchange each code once; refuse with status 200, as GitHub does."""
        fields = await _fields(request)
        agreed = self._state.sign_ins.pop(fields.get("code", ""), None)
        if agreed is None or agreed.ends_at <= self._state.clock():
            return _no("bad_verification_code")
        if fields.get("client_id") != agreed.app.client_id or fields.get("client_secret") != agreed.app.client_secret:
            return _no("incorrect_client_credentials")
        if fields.get("redirect_uri", agreed.redirect_uri) != agreed.redirect_uri:
            return _no("redirect_uri_mismatch")
        if agreed.challenge and _challenge(fields.get("code_verifier", "")) != agreed.challenge:
            return _no("bad_verification_code")
        token = f"ghu_{secrets.token_hex(18)}"
        agreed.ends_at = self._state.clock() + TOKEN_SECONDS
        self._state.user_tokens[token] = agreed
        return JSONResponse({"access_token": token, "token_type": "bearer", "scope": "", "expires_in": TOKEN_SECONDS})

    def _app(self, client_id: str) -> App | None:
        return next((one for one in self._state.apps.values() if one.client_id == client_id), None)


def _is_registered(app: App, uri: str) -> bool:
    """Compare the addresses exactly, except for the port of a loopback address."""
    asked = urlsplit(uri)
    for one in map(urlsplit, app.callback_urls):
        here = asked.hostname in LOOPBACK and asked.hostname == one.hostname
        if (asked.scheme, asked.path) == (one.scheme, one.path) and (here or asked.netloc == one.netloc):
            return True
    return False


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


async def _fields(request: Request) -> dict[str, str]:
    body = await request.body()
    if "json" in request.headers.get("content-type", ""):
        return msgspec.json.decode(body, type=dict[str, str])
    return dict(parse_qsl(body.decode()))


def _no(error: str) -> Response:
    return JSONResponse({"error": error, "error_description": "See GitHub's documentation."})
