"""Who waits and who runs, in brief, and how long turns have taken lately: what a place in the line is told from."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models import InstallationId, RepoId, SessionId, TurnKey, TurnState
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import many

_STANDING = """
SELECT turns.session_id, turns.n, turns.state, turns.created_at, turns.started_at, sessions.thread_id, threads.repo_id,
       repos.installation_id
FROM turns JOIN sessions ON sessions.id = turns.session_id JOIN threads ON threads.id = sessions.thread_id
JOIN repos ON repos.id = threads.repo_id
WHERE turns.state IN ('queued', 'running') ORDER BY turns.created_at, turns.session_id, turns.n
"""
_LATELY = """
SELECT finished_at - started_at AS seconds FROM turns
WHERE state = 'done' AND started_at IS NOT NULL AND finished_at >= started_at ORDER BY finished_at DESC LIMIT :limit
"""


@dataclass(frozen=True)
class OpenTurn(Record):
    """A turn that waits or runs."""

    session_id: SessionId
    n: int
    state: TurnState
    created_at: float
    started_at: float | None
    thread_id: str
    repo_id: RepoId
    installation_id: InstallationId

    @property
    def key(self) -> TurnKey:
        return TurnKey(self.session_id, self.n)


async def open_turns(store: Store) -> list[OpenTurn]:
    """In the order in which they were asked for."""
    return [OpenTurn.of(row) for row in await store.read(lambda db: many(db, _STANDING))]


async def latest_seconds(store: Store, limit: int) -> list[float]:
    """Seconds that the latest ended turns took, from their start to their end."""
    return [float(row["seconds"]) for row in await store.read(lambda db: many(db, _LATELY, limit=limit))]
