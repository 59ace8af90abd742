"""Tokens of the gateway, and the transaction in which a request is judged. A token itself is never stored, only its
SHA-256."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from bot.account_settings import Choices
from bot.funds import Account
from bot.models import InstallationId, RepoId, SessionId, TurnKey
from bot.settings import Secret
from bot.store import budgets, choices, spend
from bot.store.base import Database, Store
from bot.store.rows import one, run
from bot.store.spend import NO_REPO, Cost, Payers, Reserve, Window

PREFIX = "fht_"
_TURN = "session_id = :session AND turn = :turn"


@dataclass(frozen=True)
class Grant:
    """What a token permits, as it stands in the store."""

    key: TurnKey
    payers: Payers
    model: str
    budget_usd: float
    """Of this turn alone; 0: none, what the session may spend is the limit."""
    max_requests: int
    requests: int
    concurrency: int
    expires_at: float
    revoked: bool
    refused: str | None = None
    """Why a request with it was last refused for good."""

    @property
    def installation(self) -> InstallationId:
        return self.payers.installation

    def is_live(self, now: float) -> bool:
        return not self.revoked and now < self.expires_at


@dataclass(frozen=True)
class Standing:
    """Everything that is judged before a request: read in the transaction that also reserves."""

    grant: Grant
    turn: Cost
    session: Account
    windows: tuple[Cost | None, ...] = ()
    """Of the claim's windows, in their order; None: there is nobody to have that limit."""
    own: Choices = field(default_factory=dict)
    """By which the account has narrowed them."""


@dataclass(frozen=True)
class Claim:
    """A request that wants to be made."""

    id: str
    token_sha256: str
    reserve_usd: float
    windows: tuple[Window, ...] = ()
    """What there are limits for beside the turn's own."""


Judge = Callable[[Standing], None]
"""Raises when the request must not be made; nothing is written then."""


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def new_claim_id() -> str:
    return uuid.uuid4().hex


async def mint(  # noqa: PLR0913 - what a token is bound to, named at the one call
    store: Store,
    key: TurnKey,
    installation: InstallationId,
    *,
    model: str,
    budget_usd: float,
    expires_at: float,
    max_requests: int = 2_000,
    concurrency: int = 8,
    repo: RepoId = NO_REPO,
    user: int = 0,
) -> Secret:
    """A new token for a turn. It is shown this once; earlier ones of the turn go on until `revoke`."""
    token = PREFIX + secrets.token_urlsafe(32)
    values = {
        "sha": digest(token),
        "session": key.session,
        "turn": key.n,
        "installation": installation,
        "repo": repo,
        "user": user,
        "model": model,
        "budget": budget_usd,
        "max_requests": max_requests,
        "concurrency": concurrency,
        "expires_at": expires_at,
        "now": store.now(),
    }
    sql = """
    INSERT INTO gateway_tokens (token_sha256, session_id, turn, installation_id, repo_id, user_id, model, budget_usd,
        max_requests, concurrency, expires_at, created_at)
    VALUES (:sha, :session, :turn, :installation, :repo, :user, :model, :budget, :max_requests, :concurrency,
        :expires_at, :now)
    """
    await store.write(lambda db: run(db, sql, **values))
    return Secret(token)


async def revoke(store: Store, key: TurnKey) -> None:
    """From now on no token of the turn is accepted, and streams under way are cut."""
    sql = f"UPDATE gateway_tokens SET revoked_at = :now WHERE {_TURN} AND revoked_at IS NULL"  # noqa: S608 - constant
    now = store.now()
    await store.write(lambda db: run(db, sql, now=now, session=key.session, turn=key.n))


async def revoke_all_dead(store: Store) -> int:
    """Revoke the tokens of turns that are done, and of turns whose deadline has passed."""
    sql = """
    UPDATE gateway_tokens SET revoked_at = :now WHERE revoked_at IS NULL AND (expires_at <= :now OR EXISTS (
        SELECT 1 FROM turns WHERE turns.session_id = gateway_tokens.session_id
        AND turns.n = gateway_tokens.turn AND turns.state = 'done'))
    """
    now = store.now()
    return await store.write(lambda db: run(db, sql, now=now))


async def extend(store: Store, key: TurnKey, until: float) -> None:
    """Move the deadline of the turn's tokens; revoked ones stay revoked."""
    sql = f"UPDATE gateway_tokens SET expires_at = :until WHERE {_TURN} AND revoked_at IS NULL"  # noqa: S608 - constant
    await store.write(lambda db: run(db, sql, until=until, session=key.session, turn=key.n))


async def note_refusal(store: Store, token_sha256: str, reason: str, *, last: str) -> None:
    """Over earlier ones; `last` is the reason that no other takes the place of."""
    sql = """
    UPDATE gateway_tokens SET refused = :reason
    WHERE token_sha256 = :sha AND (refused IS NULL OR refused <> :last)
    """
    await store.write(lambda db: run(db, sql, reason=reason, sha=token_sha256, last=last))


async def last_refusal(store: Store, key: TurnKey) -> str | None:
    """Why the newest of the turn's tokens that was refused for good was."""
    sql = f"SELECT refused FROM gateway_tokens WHERE {_TURN} AND refused IS NOT NULL ORDER BY created_at DESC LIMIT 1"  # noqa: S608 - constant
    row = await store.read(lambda db: one(db, sql, session=key.session, turn=key.n))
    return None if row is None else str(row["refused"])


async def grant(store: Store, token_sha256: str) -> Grant | None:
    return await store.read(lambda db: _grant(db, token_sha256))


async def reserve(store: Store, claim: Claim, judge: Judge) -> Standing | None:
    """Judge and reserve in one transaction: requests in parallel are judged one after the other.

    None when there is no such token. What `judge` raises is raised, and nothing is reserved.
    """
    now = store.now()

    def act(db: Database, found: Grant) -> None:
        reserved = Reserve(found.model, claim.reserve_usd, now)
        spend.insert(db, claim.id, found.key, found.payers, reserved)
        _bump(db, claim)

    return await _judged(store, claim, judge, act)


async def count_request(store: Store, claim: Claim, judge: Judge) -> Standing | None:
    """As `reserve`, for a request that costs nothing: only the number of requests is used up."""
    return await _judged(store, claim, judge, lambda db, found: _bump(db, claim))


async def reserve_more(store: Store, claim: Claim, judge: Judge) -> Standing | None:
    """Add `claim.reserve_usd`, which may be less than nothing, to what the request under way has reserved, if `judge`
    lets it go on."""
    return await _judged(store, claim, judge, lambda db, found: spend.add(db, claim.id, claim.reserve_usd))


async def _judged(store: Store, claim: Claim, judge: Judge, act: Callable[[Database, Grant], None]) -> Standing | None:
    def work(db: Database) -> Standing | None:
        standing = _standing(db, claim)
        if standing is not None:
            judge(standing)
            act(db, standing.grant)
        return standing

    return await store.write(work)


def _grant(db: Database, token_sha256: str) -> Grant | None:
    row = one(db, "SELECT * FROM gateway_tokens WHERE token_sha256 = :sha", sha=token_sha256)
    if row is None:
        return None
    return Grant(
        key=TurnKey(SessionId(row["session_id"]), row["turn"]),
        payers=Payers(InstallationId(row["installation_id"]), RepoId(row["repo_id"]), row["user_id"]),
        model=row["model"],
        budget_usd=row["budget_usd"],
        max_requests=row["max_requests"],
        requests=row["requests"],
        concurrency=row["concurrency"],
        expires_at=row["expires_at"],
        revoked=row["revoked_at"] is not None,
        refused=row["refused"],
    )


def _standing(db: Database, claim: Claim) -> Standing | None:
    found = _grant(db, claim.token_sha256)
    if found is None:
        return None
    return Standing(
        grant=found,
        turn=spend.of_turn(db, found.key),
        session=budgets.of_session(db, found.key.session),
        windows=tuple(spend.of_window(db, found.payers, window) for window in claim.windows),
        own=choices.read(db, found.installation),
    )


def _bump(db: Database, claim: Claim) -> None:
    sql = "UPDATE gateway_tokens SET requests = requests + 1 WHERE token_sha256 = :sha"
    run(db, sql, sha=claim.token_sha256)
