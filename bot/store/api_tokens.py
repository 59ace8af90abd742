"""Tokens of the API: what a program may ask for in a person's name, and what was asked and spent with each."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bot.models import InstallationId, RepoId, SessionId
from bot.store import audit
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, many, one, run, statement


@dataclass(frozen=True)
class ScopedRepo:
    """A repository by its number; the name is the one that it had when the token was made."""

    id: RepoId
    name: str


@dataclass(frozen=True)
class ApiToken(Record):
    id: str
    installation_id: InstallationId
    name: str
    made_by: str
    made_by_id: int
    repositories: tuple[ScopedRepo, ...]
    kinds: tuple[str, ...]
    may_answer: bool
    """It may answer approvals in its maker's name."""
    budget_usd: float
    """For all of its turns together."""
    made_at: float
    ends_at: float
    revoked_at: float | None = None
    used_at: float | None = None

    def is_live(self, now: float) -> bool:
        return self.revoked_at is None and now < self.ends_at

    def repo_named(self, full_name: str) -> ScopedRepo | None:
        wanted = full_name.casefold()
        return next((one for one in self.repositories if one.name.casefold() == wanted), None)

    def reaches(self, repo: int) -> bool:
        return any(one.id == repo for one in self.repositories)


_INSERT = """
INSERT INTO api_tokens (id, secret_sha256, installation_id, name, made_by, made_by_id, repositories, kinds, may_answer,
    budget_usd, made_at, ends_at)
VALUES (:id, :secret, :installation_id, :name, :made_by, :made_by_id, :repositories, :kinds, :may_answer, :budget_usd,
    :made_at, :ends_at)
ON CONFLICT (installation_id, name) DO NOTHING
"""
_REVOKE = """
UPDATE api_tokens SET revoked_at = :at WHERE installation_id = :installation AND name = :name AND revoked_at IS NULL
"""
_SELECT = "SELECT * FROM api_tokens WHERE {where} ORDER BY installation_id, made_at, id"
# A token opens nothing while the App is suspended or gone.
_LIVE = """
SELECT api_tokens.* FROM api_tokens LEFT JOIN installations ON installations.id = api_tokens.installation_id
WHERE secret_sha256 = :secret AND revoked_at IS NULL AND ends_at > :now
  AND COALESCE(installations.state, 'active') = 'active'
"""
_TURNS = """
SELECT turns.state, turns.budget_usd,
       COALESCE((SELECT SUM(CASE WHEN spend.state = 'reserved' THEN spend.reserved_usd ELSE spend.cost_usd END
                            + spend.unconfirmed_usd)
                 FROM spend WHERE spend.session_id = turns.session_id AND spend.turn = turns.n), 0.0) AS usd
FROM api_requests JOIN turns ON turns.source = api_requests.source
WHERE api_requests.token_id = :token AND api_requests.source <> :besides
"""
_WORDS = """
SELECT messages.request FROM api_requests JOIN messages ON messages.source = api_requests.source
WHERE api_requests.token_id = :token AND messages.state = 'waiting' AND api_requests.source <> :besides
"""
_KNOWS = """
SELECT 1 AS found FROM api_requests JOIN turns ON turns.source = api_requests.source
WHERE api_requests.token_id = :token AND turns.session_id = :session LIMIT 1
"""
_ASKED = """
INSERT INTO api_requests (source, token_id, at) VALUES (:source, :token, :at) ON CONFLICT (source) DO NOTHING
"""


async def put(store: Store, token: ApiToken, secret: str, *, by: str, account: str) -> bool:
    """Store a new one, and tell the audit trail; False if the account has had one of this name."""
    values: dict[str, Any] = {
        **vars(token),
        "repositories": msgspec.json.encode(token.repositories).decode(),
        "kinds": msgspec.json.encode(token.kinds).decode(),
        "may_answer": int(token.may_answer),
    }
    del values["revoked_at"], values["used_at"]
    names = ", ".join(one.name for one in token.repositories)
    answers = ", may answer approvals" if token.may_answer else ""
    detail = f"{token.name} for {token.made_by}: {', '.join(token.kinds)} in {names}, ${token.budget_usd:g}{answers}"

    def work(db: Database) -> bool:
        if not run(db, _INSERT, **values, secret=_digest(secret)):
            return False
        audit.put(db, token.made_at, by, "API token made", account, detail)
        return True

    return await store.write(work)


async def revoke(store: Store, installation: InstallationId, name: str, *, by: str, account: str) -> bool:
    """End it at once; False if there is no such token, or it has been revoked."""
    at = store.now()

    def work(db: Database) -> bool:
        if not run(db, _REVOKE, installation=installation, name=name, at=at):
            return False
        audit.put(db, at, by, "API token revoked", account, name)
        return True

    return await store.write(work)


def end_in_installation(db: Database, at: float, installation: InstallationId) -> None:
    """Revoke all of an account, so that they stay ended if the App comes back."""
    sql = "UPDATE api_tokens SET revoked_at = :at WHERE installation_id = :installation AND revoked_at IS NULL"
    if run(db, sql, at=at, installation=installation):
        audit.put(db, at, "github", "API tokens revoked", str(installation), "the App was removed")


async def by_secret(store: Store, secret: str) -> ApiToken | None:
    """Return a token that works now."""
    return await ApiToken.one(store, _LIVE, secret=_digest(secret), now=store.now())


async def get(store: Store, token: str) -> ApiToken | None:
    return await ApiToken.one(store, statement(_SELECT, where="id = :id"), id=token)


async def of_installation(store: Store, installation: InstallationId) -> list[ApiToken]:
    return await ApiToken.many(store, statement(_SELECT, where="installation_id = :id"), id=installation)


async def every(store: Store) -> Sequence[ApiToken]:
    return await ApiToken.many(store, statement(_SELECT, where="installation_id >= 0"))


async def used(store: Store, token: ApiToken, source: str, what: str, subject: str) -> None:
    """Note a request with it, once by its source, in the audit trail too."""
    at = store.now()

    def work(db: Database) -> None:
        if run(db, _ASKED, source=source, token=token.id, at=at):
            run(db, "UPDATE api_tokens SET used_at = :at WHERE id = :id", at=at, id=token.id)
            audit.put(db, at, token.made_by, f"API: {what}", subject, f"with the token {token.name}")

    await store.write(work)


async def knows(store: Store, token: ApiToken, session: SessionId) -> bool:
    """Tell whether a turn of the session was started with it."""
    return await store.one(_KNOWS, token=token.id, session=session) is not None


async def left_usd(store: Store, token: ApiToken, *, besides: str) -> float:
    """Return what its budget leaves. A turn that is not done, and words that may become a turn, count with all that
    they may spend; the request `besides` does not count."""

    def work(db: Database) -> float:
        taken = 0.0
        for row in many(db, _TURNS, token=token.id, besides=besides):
            taken += row["usd"] if row["state"] == "done" else max(row["usd"], row["budget_usd"])
        for row in many(db, _WORDS, token=token.id, besides=besides):
            taken += float(msgspec.json.decode(row["request"])["budget_usd"])
        return token.budget_usd - taken

    return await store.read(work)


async def key_of(store: Store, source: str) -> tuple[SessionId, int] | None:
    """Return the session and turn that a request has started or reached."""

    def work(db: Database) -> tuple[SessionId, int] | None:
        turn = one(db, "SELECT session_id, n FROM turns WHERE source = :source", source=source)
        found = turn or one(db, "SELECT session_id, turn AS n FROM messages WHERE source = :source", source=source)
        return (found["session_id"], found["n"]) if found else None

    return await store.read(work)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
