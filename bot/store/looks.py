"""What people look at in pages, read at one moment: a session with all that is drawn of it, and lists of others."""

from __future__ import annotations

from dataclasses import dataclass

from bot.funds import Account
from bot.models import InstallationId, Outcome, Repo, RepoId, SessionId, TurnState
from bot.store import budgets, machines
from bot.store.base import Store
from bot.store.records import Record, Turn
from bot.store.rows import Database, many, one
from bot.store.turns import of_session

MOST_POINTS = 2000
"""Of a drawing; the newest."""


@dataclass(frozen=True)
class Point(Record):
    """One measure of an environment."""

    at: float
    cpu_percent: float
    memory_bytes: int


@dataclass(frozen=True)
class Look:
    """A session beside its transcript."""

    turns: list[Turn]
    points: list[Point]
    spent: list[tuple[float, float]]
    """(when, dollars) of each request at the model."""
    tokens: int
    account: Account
    sandbox_usd: float
    deliveries: list[str]
    environments: list[str]
    last_seq: int

    @property
    def usd(self) -> float:
        return sum(usd for _, usd in self.spent)


@dataclass(frozen=True)
class Recent(Record):
    """A session in a list; state and outcome are those of its last turn."""

    id: SessionId
    repo_id: RepoId
    installation_id: InstallationId
    owner: str
    name: str
    private: bool
    default_branch: str
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
    def repo(self) -> Repo:
        return Repo(self.repo_id, self.owner, self.name, self.private, self.default_branch)


@dataclass(frozen=True)
class Delivered(Record):
    """What GitHub told about a repository, and what became of it."""

    guid: str
    event: str
    action: str | None
    received_at: float
    state: str
    reason: str | None
    number: int | None
    sender: str | None
    session_id: SessionId | None
    repo_id: RepoId
    installation_id: InstallationId
    owner: str
    name: str
    private: bool
    default_branch: str

    @property
    def repo(self) -> Repo:
        return Repo(self.repo_id, self.owner, self.name, self.private, self.default_branch)


_POINTS = "SELECT at, cpu_percent, memory_bytes FROM samples WHERE session_id = :id ORDER BY at DESC LIMIT :most"
_SPENT = "SELECT at, cost_usd FROM spend WHERE session_id = :id AND cost_usd > 0 ORDER BY at"
_TOKENS = """
SELECT COALESCE(SUM(input_tokens + output_tokens + cache_read_tokens + cache_write_tokens), 0) AS tokens
FROM spend WHERE session_id = :id
"""
_DELIVERIES = "SELECT guid FROM deliveries WHERE session_id = :id ORDER BY received_at, guid LIMIT 50"
_ENVIRONMENTS = """
SELECT environment_id FROM machine_runs WHERE session_id = :id
UNION SELECT environment_id FROM sessions WHERE id = :id AND environment_id IS NOT NULL
"""
_MACHINES = f"SELECT COALESCE(SUM({machines.USD}), 0) AS usd FROM machine_runs WHERE session_id = :id"  # noqa: S608
_DELIVERED = """
SELECT deliveries.guid, deliveries.event, deliveries.action, deliveries.received_at, deliveries.state,
       deliveries.reason, deliveries.number, deliveries.sender, deliveries.session_id, repos.id AS repo_id,
       repos.installation_id, repos.owner, repos.name, repos.private, repos.default_branch
FROM deliveries JOIN repos ON repos.id = deliveries.repo_id
WHERE repos.removed_at IS NULL ORDER BY deliveries.received_at DESC, deliveries.guid LIMIT :limit
"""
_RECENT = """
SELECT sessions.id, threads.repo_id, repos.installation_id, repos.owner, repos.name, repos.private,
       repos.default_branch, threads.number, last.state, last.outcome, last.requester, last.prompt, sessions.pull_url,
       sessions.pull_number, last.created_at AS asked_at,
       COALESCE((SELECT SUM(spend.cost_usd) FROM spend WHERE spend.session_id = sessions.id), 0.0) AS cost_usd
FROM sessions JOIN threads ON threads.id = sessions.thread_id JOIN repos ON repos.id = threads.repo_id
JOIN turns AS last ON last.session_id = sessions.id
     AND last.n = (SELECT MAX(n) FROM turns WHERE turns.session_id = sessions.id)
WHERE repos.removed_at IS NULL
ORDER BY last.state = 'done', last.created_at DESC, sessions.id LIMIT :limit
"""


async def of(store: Store, session: SessionId) -> Look:
    now = store.now()
    return await store.read(lambda db: _look(db, session, now))


async def recent(store: Store, limit: int) -> list[Recent]:
    """What runs or waits first, then the newest."""
    return [Recent.of(row) for row in await store.read(lambda db: many(db, _RECENT, limit=limit))]


async def delivered(store: Store, limit: int) -> list[Delivered]:
    """The newest first."""
    return [Delivered.of(row) for row in await store.read(lambda db: many(db, _DELIVERED, limit=limit))]


def _look(db: Database, session: SessionId, now: float) -> Look:
    points = [Point.of(row) for row in many(db, _POINTS, id=session, most=MOST_POINTS)]
    tokens, paid = one(db, _TOKENS, id=session), one(db, _MACHINES, id=session, now=now)
    last = one(db, "SELECT COALESCE(MAX(seq), 0) AS seq FROM events WHERE session_id = :id", id=session)
    assert tokens and paid and last
    return Look(
        turns=of_session(db, session),
        points=points[::-1],
        spent=[(row["at"], row["cost_usd"]) for row in many(db, _SPENT, id=session)],
        tokens=int(tokens["tokens"]),
        account=budgets.of_session(db, session),
        sandbox_usd=float(paid["usd"]),
        deliveries=[row["guid"] for row in many(db, _DELIVERIES, id=session)],
        environments=[row["environment_id"] for row in many(db, _ENVIRONMENTS, id=session)],
        last_seq=int(last["seq"]),
    )
