"""Stores the findings of our reviews."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from bot.agent.findings import Severity
from bot.models import RepoId, SessionId, TurnKey
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, run


@dataclass(frozen=True)
class StoredFinding(Record):
    id: str
    session_id: SessionId
    turn: int
    place: int
    repo_id: RepoId
    number: int
    path: str
    line: int
    body: str
    code_sha256: str
    """Digest of the lines that it is about; empty if we could not read them."""
    code_lines: int
    comment_id: int | None
    """None: it is in the review's summary."""
    severity: Severity = Severity.MINOR
    state: str = "open"


_PUT = """
INSERT INTO findings (id, session_id, turn, place, repo_id, number, state, severity, path, line, body, code_sha256,
                      code_lines, comment_id, at)
VALUES (:id, :session_id, :turn, :place, :repo_id, :number, :state, :severity, :path, :line, :body, :code_sha256,
        :code_lines, :comment_id, :at)
ON CONFLICT (id) DO NOTHING
"""

_ANSWERED = """
UPDATE findings SET state = 'resolved' WHERE repo_id = :repo AND comment_id = :comment_id AND state = 'open'
"""


def finding_name(key: TurnKey, place: int) -> str:
    return f"{key.session}-{key.n}-{place}"


OPEN, DISMISSED = "open", "dismissed"


async def by_name(store: Store, repo: RepoId, name: str) -> StoredFinding | None:
    sql = "SELECT * FROM findings WHERE id = :name AND repo_id = :repo"
    return await StoredFinding.one(store, sql, name=name, repo=repo)


async def by_comment(store: Store, repo: RepoId, comment_id: int) -> StoredFinding | None:
    """Find it by its comment in the diff."""
    sql = "SELECT * FROM findings WHERE comment_id = :comment AND repo_id = :repo"
    return await StoredFinding.one(store, sql, comment=comment_id, repo=repo)


async def of_pull(store: Store, repo: RepoId, number: int) -> list[StoredFinding]:
    """Return the open and the dismissed findings of a pull request, oldest first."""
    sql = """
    SELECT * FROM findings WHERE repo_id = :repo AND number = :number AND state <> 'resolved' ORDER BY at, turn, place
    """
    return await StoredFinding.many(store, sql, repo=repo, number=number)


async def open_findings(store: Store, repo: RepoId, number: int) -> list[StoredFinding]:
    """Return the open findings of all reviews of the pull request, oldest first."""
    sql = """
    SELECT * FROM findings WHERE repo_id = :repo AND number = :number AND state = 'open' ORDER BY at, turn, place
    """
    return await StoredFinding.many(store, sql, repo=repo, number=number)


async def put_findings(store: Store, new: Sequence[StoredFinding], resolved: Iterable[str]) -> None:
    """Store what a review has said, and resolve earlier findings; safe to repeat."""
    at, done = store.now(), list(resolved)

    def work(db: Database) -> None:
        for finding in new:
            run(db, _PUT, at=at, **vars(finding))
        for finding_id in done:
            run(db, "UPDATE findings SET state = 'resolved' WHERE id = :id AND state = 'open'", id=finding_id)

    await store.write(work)


async def resolve_answered(store: Store, repo: RepoId, comment_ids: Collection[int]) -> None:
    """Resolve the findings that started these discussions."""

    def work(db: Database) -> None:
        for comment in comment_ids:
            run(db, _ANSWERED, repo=repo, comment_id=comment)

    if comment_ids:
        await store.write(work)
