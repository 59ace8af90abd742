"""The gateway's tokens, stored only as SHA-256, and the transaction that judges a request."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from bot.account_settings import Choices
from bot.funds import BudgetAccount
from bot.models import InstallationId, RepoId, SessionId, TurnKey
from bot.settings import Secret
from bot.store import accounts, spend
from bot.store.base import Database, Store
from bot.store.rows import one, run, statement
from bot.store.spend import NO_REPO, ModelCost, Payers, Reserve, Window

PREFIX = "fht_"
_TURN = "session_id = :session AND turn = :turn"


@dataclass(frozen=True)
class Grant:
    key: TurnKey
    payers: Payers
    model: str
    fallback: str | None
    """A second model that the turn may ask."""
    budget_usd: float
    """For this turn alone; 0: only the session's budget limits it."""
    max_requests: int
    requests: int
    concurrency: int
    expires_at: float
    revoked: bool
    refused: str | None = None
    """The reason of the last final refusal."""
    registries: tuple[str, ...] | None = None
    """The registries that it opens, by name; None: it opens the model instead."""

    @property
    def models(self) -> tuple[str, ...]:
        return (self.model,) if self.fallback is None else (self.model, self.fallback)

    @property
    def installation(self) -> InstallationId:
        return self.payers.installation

    def is_live(self, now: float) -> bool:
        return not self.revoked and now < self.expires_at


@dataclass(frozen=True)
class RequestContext:
    """All that a judge looks at, read in the transaction that also reserves."""

    grant: Grant
    turn: ModelCost
    session: BudgetAccount
    windows: tuple[ModelCost | None, ...] = ()
    """Costs in the claim's windows, in their order; None: no known payer, so no limit."""
    own: Choices = field(default_factory=dict)
    """The account's settings, which narrow the limits."""


@dataclass(frozen=True)
class RequestSubject:
    """The model that a request asks, of those that its token admits, and the question that it answers, if any."""

    model: str
    question: str | None = None


@dataclass(frozen=True)
class GatewayClaim:
    id: str
    token_sha256: str
    reserve_usd: float
    windows: tuple[Window, ...] = ()
    """Windows that have limits beside the turn's own."""
    about: RequestSubject | None = None
    """Needed to reserve."""


Judge = Callable[[RequestContext], None]
"""Raises if the request must not be made; then nothing is written."""


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def new_claim_id() -> str:
    return uuid.uuid4().hex


async def mint(  # noqa: PLR0913 - its one caller names each
    store: Store,
    key: TurnKey,
    installation: InstallationId,
    *,
    model: str,
    budget_usd: float,
    expires_at: float,
    max_requests: int = 2_000,
    concurrency: int = 8,
    fallback: str | None = None,
    repo: RepoId = NO_REPO,
    user: int = 0,
) -> Secret:
    """Create a token for a turn. Only this call returns it; earlier tokens of the turn stay valid until `revoke`."""
    token = PREFIX + secrets.token_urlsafe(32)
    payers = {"installation": installation, "repo": repo, "user": user}
    limits = {"budget": budget_usd, "max_requests": max_requests, "concurrency": concurrency, "expires_at": expires_at}
    sql = """
    INSERT INTO gateway_tokens (token_sha256, session_id, turn, installation_id, repo_id, user_id, model, fallback,
        budget_usd, max_requests, concurrency, expires_at, created_at)
    VALUES (:sha, :session, :turn, :installation, :repo, :user, :model, :fallback, :budget, :max_requests,
        :concurrency, :expires_at, :now)
    """
    about = {"sha": digest(token), "session": key.session, "turn": key.n, "now": store.now()}
    await store.run(sql, **about, model=model, fallback=fallback, **payers, **limits)
    return Secret(token)


async def mint_for_packages(
    store: Store, key: TurnKey, installation: InstallationId, registries: Sequence[str], expires_at: float
) -> Secret:
    """Create a token that opens these registries and nothing else. It is revoked with its turn's tokens."""
    token = PREFIX + secrets.token_urlsafe(32)
    sql = """
    INSERT INTO gateway_tokens (token_sha256, session_id, turn, installation_id, model, budget_usd, max_requests,
        concurrency, expires_at, created_at, registries)
    VALUES (:sha, :session, :turn, :installation, '', 0, 0, 0, :expires_at, :now, :registries)
    """
    about = {"sha": digest(token), "session": key.session, "turn": key.n, "installation": installation}
    names = msgspec.json.encode(registries).decode()
    await store.run(sql, **about, expires_at=expires_at, now=store.now(), registries=names)
    return Secret(token)


async def revoke_one(store: Store, token: Secret) -> None:
    sql = "UPDATE gateway_tokens SET revoked_at = :now WHERE token_sha256 = :sha AND revoked_at IS NULL"
    await store.run(sql, now=store.now(), sha=digest(token.reveal()))


async def revoke(store: Store, key: TurnKey) -> None:
    """Revoke all tokens of the turn, which also cuts its streams."""
    sql = statement("UPDATE gateway_tokens SET revoked_at = :now WHERE {turn} AND revoked_at IS NULL", turn=_TURN)
    await store.run(sql, now=store.now(), session=key.session, turn=key.n)


async def revoke_all_dead(store: Store) -> int:
    """Revoke the tokens of turns that are done, and of turns whose deadline has passed."""
    sql = """
    UPDATE gateway_tokens SET revoked_at = :now WHERE revoked_at IS NULL AND (expires_at <= :now OR EXISTS (
        SELECT 1 FROM turns WHERE turns.session_id = gateway_tokens.session_id
        AND turns.n = gateway_tokens.turn AND turns.state = 'done'))
    """
    return await store.run(sql, now=store.now())


async def extend(store: Store, key: TurnKey, until: float) -> None:
    """Move the deadline of the turn's tokens; revoked ones stay revoked."""
    sql = statement("UPDATE gateway_tokens SET expires_at = :until WHERE {turn} AND revoked_at IS NULL", turn=_TURN)
    await store.run(sql, until=until, session=key.session, turn=key.n)


async def note_refusal(store: Store, token_sha256: str, reason: str, *, last: str) -> None:
    """Replace an earlier refusal, unless that one's reason is `last`."""
    sql = """
    UPDATE gateway_tokens SET refused = :reason
    WHERE token_sha256 = :sha AND (refused IS NULL OR refused <> :last)
    """
    await store.run(sql, reason=reason, sha=token_sha256, last=last)


async def last_refusal(store: Store, key: TurnKey) -> str | None:
    """Return the reason of the final refusal of the turn's newest refused token."""
    newest = "SELECT refused FROM gateway_tokens WHERE {turn} AND refused IS NOT NULL ORDER BY created_at DESC LIMIT 1"
    sql = statement(newest, turn=_TURN)
    row = await store.one(sql, session=key.session, turn=key.n)
    return None if row is None else str(row["refused"])


async def grant(store: Store, token_sha256: str) -> Grant | None:
    return await store.read(lambda db: _grant(db, token_sha256))


async def reserve(store: Store, claim: GatewayClaim, judge: Judge) -> RequestContext | None:
    """Judge and reserve in one transaction, so that parallel requests are judged one after the other.

    None: no such token. If `judge` raises, nothing is reserved."""
    now = store.now()

    def act(db: Database, found: Grant) -> None:
        about = claim.about or RequestSubject(found.model)
        reserve = Reserve(about.model, claim.reserve_usd, now, store.replica, about.question)
        spend.insert(db, claim.id, found.key, found.payers, reserve)
        _count(db, claim)

    return await _judged(store, claim, judge, act)


async def count_request(store: Store, claim: GatewayClaim, judge: Judge) -> RequestContext | None:
    """Judge a request that costs nothing: it only counts as a request."""
    return await _judged(store, claim, judge, lambda db, _: _count(db, claim))


async def reserve_more(store: Store, claim: GatewayClaim, judge: Judge) -> RequestContext | None:
    """Add `claim.reserve_usd`, which may be negative, to the reserve of a request under way, if `judge` allows it."""
    return await _judged(store, claim, judge, lambda db, _: spend.add_to_reserve(db, claim.id, claim.reserve_usd))


async def _judged(
    store: Store, claim: GatewayClaim, judge: Judge, act: Callable[[Database, Grant], None]
) -> RequestContext | None:
    def work(db: Database) -> RequestContext | None:
        context = _context(db, claim)
        if context is not None:
            judge(context)
            act(db, context.grant)
        return context

    return await store.write(work)


def _grant(db: Database, token_sha256: str) -> Grant | None:
    row = one(db, "SELECT * FROM gateway_tokens WHERE token_sha256 = :sha", sha=token_sha256)
    if row is None:
        return None
    return Grant(
        key=TurnKey(SessionId(row["session_id"]), row["turn"]),
        payers=Payers(InstallationId(row["installation_id"]), RepoId(row["repo_id"]), row["user_id"]),
        model=row["model"],
        fallback=row["fallback"],
        budget_usd=row["budget_usd"],
        max_requests=row["max_requests"],
        requests=row["requests"],
        concurrency=row["concurrency"],
        expires_at=row["expires_at"],
        revoked=row["revoked_at"] is not None,
        refused=row["refused"],
        registries=tuple(msgspec.json.decode(row["registries"])) if row["registries"] else None,
    )


def _context(db: Database, claim: GatewayClaim) -> RequestContext | None:
    found = _grant(db, claim.token_sha256)
    if found is None:
        return None
    return RequestContext(
        grant=found,
        turn=spend.of_turn(db, found.key),
        session=spend.account_of(db, found.key.session),
        windows=tuple(spend.of_window(db, found.payers, window) for window in claim.windows),
        own=accounts.read_settings(db, found.installation),
    )


def _count(db: Database, claim: GatewayClaim) -> None:
    sql = "UPDATE gateway_tokens SET requests = requests + 1 WHERE token_sha256 = :sha"
    run(db, sql, sha=claim.token_sha256)
