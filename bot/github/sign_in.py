"""The second half of signing in with GitHub: the code of the redirect becomes a person; the token is not kept."""

from __future__ import annotations

import re

import msgspec

from bot.errors import GitHubRefused
from bot.github import wire
from bot.github.api import Api, Call, require
from bot.models import Person
from bot.settings import GitHubSettings, Secret

_CODE = re.compile(r"[A-Za-z0-9_-]{10,100}")


class _Exchanged(msgspec.Struct):
    """GitHub answers 200 also when it says no."""

    access_token: str = ""
    error: str = ""


async def person(settings: GitHubSettings, code: str, redirect_uri: str, verifier: str) -> Person:
    """Who has just confirmed GitHub's page; raises GitHubRefused or GitHubUnavailable."""
    if settings.client_secret is None or not _CODE.fullmatch(code):
        raise GitHubRefused(400, "that is no code of GitHub's")
    token = await _exchange(settings, settings.client_secret, code, redirect_uri, verifier)
    api = Api(settings.api_url)
    try:
        answer = require(await api.send(Call("GET", "/user"), Secret(f"Bearer {token.reveal()}")))
    finally:
        await api.close()
    return answer.decode(wire.User).person()


async def _exchange(settings: GitHubSettings, client_secret: Secret, code: str, uri: str, verifier: str) -> Secret:
    body = {
        "client_id": settings.client_id,
        "client_secret": client_secret.reveal(),
        "code": code,
        "redirect_uri": uri,
        "code_verifier": verifier,  # an older GitHub Enterprise knows nothing of it, and skips it
    }
    api = Api(settings.url)
    try:
        call = Call("POST", "/login/oauth/access_token", body=body, accept="application/json")
        found = require(await api.send(call, None)).decode(_Exchanged)
    finally:
        await api.close()
    if not found.access_token or any(not "!" <= letter <= "~" for letter in found.access_token):
        reason = re.sub(r"[^a-z_]", "", found.error)[:60]
        raise GitHubRefused(400, f"the code was not taken ({reason or 'no reason was given'})")
    return Secret(found.access_token)
