"""Makes credentials: the App's signed JWT, installation tokens per purpose and repository, and what a redirect's
one-time code stands for."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from bot.errors import GitHubRefused, GitHubUnavailable, SettingsError
from bot.github import wire
from bot.github.api import Api, ApiAnswer, ApiCall, require, server_time
from bot.github.types import Converted, TokenPurpose
from bot.models import InstallationId, Person, RepoId
from bot.settings import GitHubSettings, Secret, app_key

Clock = Callable[[], float]

PERMISSIONS: Mapping[TokenPurpose, Mapping[str, str]] = {
    TokenPurpose.METADATA: {"metadata": "read"},
    TokenPurpose.READ_REPOSITORY: {"contents": "read", "metadata": "read"},
    TokenPurpose.PUSH: {"contents": "write", "metadata": "read"},
    # Only for a push that somebody approved: the App may well lack it.
    TokenPurpose.PUSH_WORKFLOWS: {"contents": "write", "workflows": "write", "metadata": "read"},
    TokenPurpose.THREAD: {"issues": "write", "pull_requests": "write", "contents": "read", "metadata": "read"},
    TokenPurpose.CHECKS: {"checks": "write", "metadata": "read"},
    TokenPurpose.STATUSES: {"statuses": "read", "metadata": "read"},
    # GitHub resolves discussions only for those who may write both; its documentation does not say so.
    TokenPurpose.RESOLVE: {"pull_requests": "write", "contents": "write", "metadata": "read"},
    TokenPurpose.MEMBERS: {"members": "read", "metadata": "read"},
    TokenPurpose.ACTIONS: {"actions": "read", "metadata": "read"},
    TokenPurpose.RERUN: {"actions": "write", "metadata": "read"},
}

_BACKDATED_SECONDS = 60  # GitHub refuses a JWT from the future
_JWT_SECONDS = 480  # at most 600 ahead of GitHub's clock, which may be behind ours
_SKEW_SECONDS = 30
_SPARE_SECONDS = 300
_SPARE_SHARE = 0.2  # for a token with a shorter life than usual
_CODE = re.compile(r"[A-Za-z0-9_-]{10,100}")


class Signer:
    """Signs the JWT that proves who we are, by GitHub's clock once ours was wrong."""

    def __init__(self, app_id: int, private_key: Secret, clock: Clock = time.time) -> None:
        self._app_id = app_id
        self._private_key = private_key
        self._clock = clock
        self._offset = 0.0

    def now(self) -> float:
        return self._clock() + self._offset

    def authorization(self) -> Secret:
        import jwt

        key = app_key.read(self._private_key.reveal())
        if key is None:
            raise SettingsError(
                "FORGEHAND_PRIVATE_KEY cannot be read as an RSA key; download a new one from the App's page."
            )
        now = int(self.now())
        claims = {"iat": now - _BACKDATED_SECONDS, "exp": now + _JWT_SECONDS, "iss": str(self._app_id)}
        return Secret(f"Bearer {jwt.encode(claims, key, algorithm='RS256')}")

    def learn(self, answer: ApiAnswer) -> bool:
        """Take GitHub's time from its refusal; return False if the clocks agree, so that time was not the reason."""
        offset = server_time(answer.headers, self.now()) - self._clock()
        if abs(offset - self._offset) < _SKEW_SECONDS:
            return False
        self._offset = offset
        return True


class _Minted(msgspec.Struct):
    token: str
    expires_at: str


@dataclass(frozen=True)
class _Held:
    token: Secret
    renew_at: float
    dead_at: float


OUT_OF_TOUCH = "This replica is out of touch with the others, who may have taken over its work."
Scope = tuple[TokenPurpose, RepoId | None]


class Tokens:
    """The tokens of one installation. `on_secret` hears of each before anybody can use it."""

    def __init__(
        self,
        installation: InstallationId,
        send: Callable[[ApiCall], Awaitable[ApiAnswer]],
        *,
        clock: Clock,
        on_secret: Callable[[str], None],
        on_retired: Callable[[str], None],
        may_act: Callable[[], bool],
    ) -> None:
        self._installation = installation
        self._may_act = may_act
        self._send = send
        self._clock = clock
        self._on_secret = on_secret
        self._on_retired = on_retired
        self._held: dict[Scope, _Held] = {}
        self._locks: dict[Scope, asyncio.Lock] = {}
        self._replaced: list[_Held] = []

    async def get(self, purpose: TokenPurpose, repo: RepoId | None, *, fresh: bool = False) -> Secret:
        """Return a token that is good for minutes; each scope has at most one mint at a time."""
        if not self._may_act():
            raise GitHubUnavailable(OUT_OF_TOUCH, retry_after=1.0)
        scope = (purpose, repo)
        before = self._held.get(scope)
        if not fresh and before is not None and self._clock() < before.renew_at:
            return before.token
        async with self._locks.setdefault(scope, asyncio.Lock()):
            now = self._held.get(scope)
            if now is not None and now is not before and self._clock() < now.renew_at:
                return now.token
            held = await self._mint(purpose, repo)
            if now is not None:
                self._replaced.append(now)
            self._held[scope] = held
        self._retire()
        return held.token

    def discard(self, purpose: TokenPurpose, repo: RepoId | None, token: Secret) -> None:
        """Forget a token that GitHub refused, unless another caller already replaced it."""
        held = self._held.get((purpose, repo))
        if held is not None and held.token is token:
            self._replaced.append(self._held.pop((purpose, repo)))

    async def _mint(self, purpose: TokenPurpose, repo: RepoId | None) -> _Held:
        body: dict[str, object] = {"permissions": dict(PERMISSIONS[purpose])}
        if repo is not None:
            body["repository_ids"] = [repo]
        # A second token does no harm, so a mint whose answer was lost may be sent again.
        call = ApiCall("POST", f"/app/installations/{self._installation}/access_tokens", body=body, repeatable=True)
        asked_at = self._clock()
        answer = require(await self._send(call))
        minted = answer.decode(_Minted)
        if not minted.token or any(not "!" <= char <= "~" for char in minted.token):
            raise GitHubUnavailable(f"{call}: the answer holds no usable token.")
        self._on_secret(minted.token)
        try:
            ends_at = datetime.fromisoformat(minted.expires_at).timestamp()
        except ValueError:
            ends_at = 0.0
        lifetime = max(0.0, ends_at - server_time(answer.headers, asked_at))  # by GitHub's clock: ours may be wrong
        spare = min(_SPARE_SECONDS, lifetime * _SPARE_SHARE)
        return _Held(Secret(minted.token), asked_at + lifetime - spare, asked_at + lifetime)

    def _retire(self) -> None:
        """Let go of replaced tokens that have expired; until then they must stay redacted."""
        now = self._clock()
        for held in [one for one in self._replaced if one.dead_at <= now]:
            self._replaced.remove(held)
            self._on_retired(held.token.reveal())


class _MadeApp(msgspec.Struct):
    id: int
    slug: str
    pem: str
    webhook_secret: str | None = None
    client_id: str = ""
    client_secret: str = ""
    html_url: str = ""


async def app_for(api_url: str, code: str) -> Converted:
    """End GitHub's manifest flow: return the App for the redirect's code. The code is good once, for an hour. If the
    answer is lost, somebody has to delete the App by hand."""
    if not _CODE.fullmatch(code):
        raise GitHubRefused(404, "that is no code of GitHub's")
    made = (await _ask(api_url, ApiCall("POST", f"/app-manifests/{code}/conversions"))).decode(_MadeApp)
    hook, client = Secret(made.webhook_secret or ""), Secret(made.client_secret)
    return Converted(made.id, made.slug, Secret(made.pem), hook, made.client_id, client, made.html_url)


class _Exchanged(msgspec.Struct):
    """GitHub's answer for a code; it has status 200 even if it is a refusal."""

    access_token: str = ""
    error: str = ""


async def person_for(settings: GitHubSettings, code: str, redirect_uri: str, verifier: str) -> Person:
    """End a sign-in: return the person who just confirmed GitHub's page, and keep no token. Raise GitHubRefused or
    GitHubUnavailable."""
    if settings.client_secret is None or not _CODE.fullmatch(code):
        raise GitHubRefused(400, "that is no code of GitHub's")
    token = await _exchange(settings, settings.client_secret, code, redirect_uri, verifier)
    answer = await _ask(settings.api_url, ApiCall("GET", "/user"), Secret(f"Bearer {token.reveal()}"))
    return answer.decode(wire.UserJson).person()


async def _exchange(settings: GitHubSettings, client_secret: Secret, code: str, uri: str, verifier: str) -> Secret:
    body = {
        "client_id": settings.client_id,
        "client_secret": client_secret.reveal(),
        "code": code,
        "redirect_uri": uri,
        "code_verifier": verifier,  # an older GitHub Enterprise skips it
    }
    call = ApiCall("POST", "/login/oauth/access_token", body=body, accept="application/json")
    found = (await _ask(settings.url, call)).decode(_Exchanged)
    if not found.access_token or any(not "!" <= letter <= "~" for letter in found.access_token):
        reason = re.sub(r"[^a-z_]", "", found.error)[:60]
        raise GitHubRefused(400, f"the code was not taken ({reason or 'no reason was given'})")
    return Secret(found.access_token)


async def _ask(base_url: str, call: ApiCall, authorization: Secret | None = None) -> ApiAnswer:
    api = Api(base_url)
    try:
        return require(await api.send(call, authorization))
    finally:
        await api.close()
