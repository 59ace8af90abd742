"""Pages of long lists, newest first, each continuing the one before. Sessions are ordered by their last turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from bot.models import Outcome, RepoId, SessionId, TurnState
from bot.store.base import Store
from bot.store.records import OfRepo
from bot.store.rows import statement


@dataclass(frozen=True)
class ListPosition:
    """The row after which a list continues."""

    at: float
    id: str


@dataclass(frozen=True)
class Wanted:
    """A filter of rows; empty: any."""

    repo: RepoId | None = None
    state: str = ""
    person: str = ""
    after: ListPosition | None = None
    hidden: Collection[RepoId] = ()
    """Repositories to leave out."""
    without: Collection[str] = ()
    """Reasons whose deliveries to leave out."""
    unheeded_of: str = ""
    """The sender whose ignored deliveries to leave out."""


@dataclass(frozen=True)
class Recent(OfRepo):
    """A session, with the state and outcome of its last turn."""

    id: SessionId
    number: int
    state: TurnState
    outcome: Outcome | None
    requester: str
    prompt: str
    pull_url: str | None
    pull_number: int | None
    asked_at: float
    cost_usd: float

    @property
    def mark(self) -> ListPosition:
        return ListPosition(self.asked_at, self.id)


@dataclass(frozen=True)
class ListedDelivery(OfRepo):
    guid: str
    event: str
    action: str | None
    received_at: float
    state: str
    reason: str | None
    number: int | None
    sender: str | None
    session_id: SessionId | None
    can_replay: bool

    @property
    def mark(self) -> ListPosition:
        return ListPosition(self.received_at, self.guid)


_REPO = "repos.installation_id, repos.owner, repos.name, repos.private, repos.default_branch"
_SESSIONS = statement(
    """
SELECT sessions.id, repos.id AS repo_id, {repo}, threads.number, last.state, last.outcome, last.requester, last.prompt,
       sessions.pull_url, sessions.pull_number, last.created_at AS asked_at,
       COALESCE((SELECT SUM(spend.cost_usd) FROM spend WHERE spend.session_id = sessions.id), 0.0) AS cost_usd
FROM turns AS last JOIN sessions ON sessions.id = last.session_id
JOIN threads ON threads.id = sessions.thread_id JOIN repos ON repos.id = threads.repo_id
WHERE repos.removed_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session_id = last.session_id AND turns.n > last.n)
""",
    repo=_REPO,
)
_DELIVERIES = statement(
    """
SELECT deliveries.guid, deliveries.event, deliveries.action, deliveries.received_at, deliveries.state,
       deliveries.reason, deliveries.number, deliveries.sender, deliveries.session_id, repos.id AS repo_id,
       CASE WHEN deliveries.state = 'failed' AND deliveries.body IS NOT NULL THEN 1 ELSE 0 END AS can_replay, {repo}
FROM deliveries JOIN repos ON repos.id = deliveries.repo_id
WHERE repos.removed_at IS NULL
""",
    repo=_REPO,
)
_IN_SESSIONS = ("last.in_repo", "last.requester", "last.created_at", "last.session_id")
_IN_DELIVERIES = ("deliveries.repo_id", "deliveries.sender", "deliveries.received_at", "deliveries.guid")


async def running(store: Store, wanted: Wanted, limit: int) -> list[Recent]:
    return await _sessions(store, wanted, "last.state IN ('queued', 'running')", limit)


async def ended(store: Store, wanted: Wanted, limit: int) -> list[Recent]:
    return await _sessions(store, wanted, "last.state = 'done'", limit)


async def delivered(store: Store, wanted: Wanted, limit: int) -> list[ListedDelivery]:
    parts = [_DELIVERIES, *_common(wanted, _IN_DELIVERIES)]
    if wanted.state:
        parts.append("AND deliveries.state = :state")
    reasons = {f"without_{n}": reason for n, reason in enumerate(wanted.without)}
    if reasons:
        named = ", ".join(f":{name}" for name in reasons)
        parts.append(f"AND COALESCE(deliveries.reason, '') NOT IN ({named})")
    if wanted.unheeded_of:
        parts.append("AND (deliveries.state <> 'ignored' OR COALESCE(deliveries.sender, '') <> :ours)")
        reasons["ours"] = wanted.unheeded_of
    sql = f"{' '.join(parts)} ORDER BY deliveries.received_at DESC, deliveries.guid DESC LIMIT :limit"
    return await ListedDelivery.many(store, sql, **_values(wanted), **reasons, limit=limit)


async def delivery(store: Store, guid: str) -> ListedDelivery | None:
    """Return one of a repository that the App may see."""
    return await ListedDelivery.one(store, f"{_DELIVERIES} AND deliveries.guid = :guid", guid=guid)


async def _sessions(store: Store, wanted: Wanted, states: str, limit: int) -> list[Recent]:
    parts = [_SESSIONS, f"AND {states}", *_common(wanted, _IN_SESSIONS)]
    if wanted.state:
        parts.append("AND last.outcome = :state")
    sql = f"{' '.join(parts)} ORDER BY last.created_at DESC, last.session_id DESC LIMIT :limit"
    return await Recent.many(store, sql, **_values(wanted), limit=limit)


def _common(wanted: Wanted, places: tuple[str, str, str, str]) -> list[str]:
    """Return conditions; `places` are the columns of the repository, the person, and the mark's two."""
    parts = []
    if wanted.repo is not None:
        parts.append(f"AND {places[0]} = :repo")
    if wanted.person:
        parts.append(f"AND LOWER({places[1]}) = :person")
    if wanted.after is not None:
        parts.append(f"AND {places[2]} <= :at AND ({places[2]}, {places[3]}) < (:at, :id)")
    if wanted.hidden:
        parts.append(f"AND {places[0]} NOT IN ({', '.join(str(int(one)) for one in wanted.hidden)})")
    return parts


def _values(wanted: Wanted) -> Mapping[str, Any]:
    person = wanted.person.lower()
    given = {"repo": wanted.repo, "person": person, "state": wanted.state}
    values: dict[str, Any] = {name: value for name, value in given.items() if value}
    return {**values, **vars(wanted.after)} if wanted.after else values
