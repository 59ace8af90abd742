"""Authenticates requests: GitHub's rules for App JWTs, installation tokens and repository access."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from bot.simulation.github import keys
from bot.simulation.github.accounts import Account, App, Installation, Token
from bot.simulation.github.state import Repository, State

DOCS = "https://docs.github.com/rest"
LEVELS = {"none": 0, "read": 1, "write": 2, "admin": 3}
NOT_ACCESSIBLE = "Resource not accessible by integration"
JWT_LIFETIME = 600


class Refusal(Exception):
    """GitHub refuses: the answer's status, JSON body and extra headers."""

    def __init__(
        self, status: int, message: str, *, errors: list[Any] | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.body: dict[str, Any] = {"message": message, "documentation_url": DOCS, "status": str(status)}
        if errors is not None:
            self.body["errors"] = errors


@dataclass(frozen=True)
class Credential:
    """The checked content of the Authorization header."""

    kind: str = "none"
    """`none`, `app` (a JWT), `installation` (a token) or `user` (a token of a person who signed in)."""
    app: App | None = None
    token: Token | None = None
    user: Account | None = None


@dataclass
class TokenRules:
    """The form of tokens, `classic` (40 characters) or `stateless` (about 520), and their lifetime."""

    format: str = "classic"
    lifetime: float = 3600.0
    minted: list[Token] = field(default_factory=list)


def authenticate(state: State, header: str | None) -> Credential:
    if not header:
        return Credential()
    scheme, _, value = header.partition(" ")
    if scheme.lower() not in ("bearer", "token") or not value:
        raise Refusal(401, "Bad credentials")
    if value.startswith("ghu_"):
        return Credential("user", user=_signed_in(state, value))
    if value.startswith("ghs_") or value.count(".") != 2:
        return Credential("installation", token=live_token(state, value))
    return Credential("app", app=_app_of_jwt(state, value))


def _signed_in(state: State, value: str) -> Account:
    found = state.user_tokens.get(value)
    if found is None or found.ends_at <= state.clock():
        raise Refusal(401, "Bad credentials")
    return found.account


def live_token(state: State, value: str) -> Token:
    token = state.tokens.get(value)
    if token is None or token.revoked or token.installation.deleted or token.expires_at <= state.clock():
        raise Refusal(401, "Bad credentials")
    if token.installation.suspended_at is not None:
        raise Refusal(403, "This installation has been suspended")
    return token


def _app_of_jwt(state: State, value: str) -> App:
    undecodable = Refusal(401, "A JSON web token could not be decoded")
    try:
        header, claims, signed, signature = keys.parts(value)
    except ValueError:
        raise undecodable from None
    if header.get("alg") != "RS256":
        raise undecodable
    app = _issuer(state, claims.get("iss"))
    if not keys.verifies(app.public_keys, signed, signature):
        raise undecodable
    _check_times(claims, state.clock())
    return app


def _issuer(state: State, issuer: object) -> App:
    for app in state.apps.values():
        if str(issuer) in (str(app.id), app.client_id):
            return app
    raise Refusal(401, "Integration not found")


def _check_times(claims: dict[str, Any], now: float) -> None:
    issued, expires = claims.get("iat"), claims.get("exp")
    if not isinstance(issued, (int, float)) or issued > now + 1:
        raise Refusal(
            401,
            "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
        )
    if not isinstance(expires, (int, float)) or expires <= now:
        raise Refusal(
            401,
            "'Expiration time' claim ('exp') must be a numeric value representing the future time at which "
            "the assertion expires",
        )
    if expires > now + JWT_LIFETIME + 1:
        raise Refusal(401, "'Expiration time' claim ('exp') is too far in the future")


def mint(
    state: State, rules: TokenRules, installation: Installation, wanted: dict[str, Any], form: str | None
) -> Token:
    """Make a token, narrowed as requested; 422 for more than the installation has."""
    if installation.suspended_at is not None:
        raise Refusal(403, "This installation has been suspended")
    permissions = wanted.get("permissions") or installation.permissions
    for name, level in permissions.items():
        if LEVELS.get(level, 9) > LEVELS[installation.permissions.get(name, "none")]:
            raise Refusal(422, "The permissions requested are not granted to this installation.")
    expires_at = float(int(state.clock() + rules.lifetime))
    if (form or rules.format) == "stateless":
        claims = {"iss": "github", "aud": state.url, "iat": int(state.clock()), "exp": int(expires_at)}
        claims |= {"sub": f"installation:{installation.id}", "jti": secrets.token_hex(8)}
        value = keys.stateless_token(installation.app.id, claims)
    else:
        value = keys.classic_token()
    ids = _scope(installation, wanted)
    token = Token(value, installation, ids, {"metadata": "read", **permissions}, expires_at)
    state.tokens[value] = token
    rules.minted.append(token)
    return token


def _scope(installation: Installation, wanted: dict[str, Any]) -> frozenset[int] | None:
    names, ids = wanted.get("repositories"), wanted.get("repository_ids")
    if names is None and ids is None:
        return None
    by_name = {repo.name.lower(): repo.id for repo in installation.repos}
    found = {by_name.get(str(name).lower()) for name in names or []}
    found |= {each if each in by_name.values() else None for each in ids or []}
    if None in found or not found:
        raise Refusal(
            422, "There is at least one repository that does not exist or is not accessible to the parent installation."
        )
    return frozenset(each for each in found if each is not None)


def in_scope(token: Token | None, repo: Repository) -> bool:
    if token is None or repo not in token.installation.repos:
        return False
    return token.repository_ids is None or repo.id in token.repository_ids


def holds(token: Token, permission: str, level: str) -> bool:
    """Check a permission; a token loses what its installation loses."""
    granted = {"metadata": "read", **token.installation.permissions}.get(permission, "none")
    return min(LEVELS[token.permissions.get(permission, "none")], LEVELS[granted]) >= LEVELS[level]


def require(credential: Credential, repo: Repository, *needs: str) -> None:
    """Require any one of the needs (`issues:write`); without access, a private repository is a 404."""
    token = credential.token
    writes = any(need.endswith(":write") for need in needs)
    if not in_scope(token, repo):
        if repo.private:
            raise Refusal(404, "Not Found")
        if writes:
            raise Refusal(403, NOT_ACCESSIBLE) if token else Refusal(401, "Requires authentication")
        return
    assert token
    held = any(holds(token, *need.split(":")) for need in needs)
    if not held and (writes or repo.private):
        accepted = "; ".join(need.replace(":", "=") for need in needs)
        raise Refusal(403, NOT_ACCESSIBLE, headers={"X-Accepted-GitHub-Permissions": accepted})
    if writes and repo.archived:
        raise Refusal(403, "Repository was archived so is read-only.")
