"""Stores what people have said to be no bug: it holds for the whole repository."""

from __future__ import annotations

from dataclasses import dataclass

from bot.agent.findings import Severity
from bot.models import RepoId
from bot.store import audit
from bot.store.audit import AuditEntry
from bot.store.base import Store
from bot.store.findings import StoredFinding
from bot.store.records import Record
from bot.store.rows import Database, one, run

MOST = 500
"""A repository keeps so many, the newest."""
MOST_BODY = 6_000
MOST_WHY = 500


@dataclass(frozen=True)
class Dismissal(Record):
    finding_id: str
    repo_id: RepoId
    number: int
    path: str
    line: int
    body: str
    code_sha256: str
    code_lines: int
    severity: Severity
    login: str
    why: str
    source: str
    at: float


_PUT = """
INSERT INTO dismissals (finding_id, repo_id, number, path, line, body, code_sha256, code_lines, severity, login, why,
                        source, at)
VALUES (:finding_id, :repo_id, :number, :path, :line, :body, :code_sha256, :code_lines, :severity, :login, :why,
        :source, :at)
ON CONFLICT (finding_id) DO NOTHING
"""
_PRUNE = """
DELETE FROM dismissals WHERE repo_id = :repo AND finding_id NOT IN (
    SELECT finding_id FROM dismissals WHERE repo_id = :repo ORDER BY at DESC, finding_id LIMIT :most)
"""
_MARK = "UPDATE findings SET state = :to WHERE id = :id AND repo_id = :repo AND state = :before"


async def dismiss(store: Store, found: StoredFinding, login: str, why: str, source: str) -> bool:
    """Remember it and close the finding; False, without any change, if it is dismissed already."""
    at = store.now()
    row = {"number": found.number, "path": found.path, "line": found.line, "severity": found.severity}
    row |= {"code_sha256": found.code_sha256, "code_lines": found.code_lines}
    said = {"body": found.body[:MOST_BODY], "login": login, "why": why[:MOST_WHY], "source": source}

    def work(db: Database) -> bool:
        if not run(db, _PUT, finding_id=found.id, repo_id=found.repo_id, at=at, **row, **said):
            return False
        run(db, _MARK, id=found.id, repo=found.repo_id, before="open", to="dismissed")
        run(db, _PRUNE, repo=found.repo_id, most=MOST)
        audit.put(db, at, login, "finding dismissed", found.id, why[:MOST_WHY] or None)
        return True

    return await store.write(work)


async def take_back(store: Store, repo: RepoId, name: str, login: str, source: str) -> bool:
    """Forget it and open the finding again; also one whose dismissal is no longer kept. False if nobody has dismissed
    it, or someone else was quicker; the same `source` again is the same word."""
    at = store.now()
    entry = AuditEntry(f"is a bug:{name}:{source}", at, login, "dismissal taken back", name, None)

    def work(db: Database) -> bool:
        forgotten = run(db, "DELETE FROM dismissals WHERE finding_id = :id AND repo_id = :repo", id=name, repo=repo)
        if run(db, _MARK, id=name, repo=repo, before="dismissed", to="open") or forgotten:
            audit.note(db, entry)
            return True
        return one(db, "SELECT id FROM audit WHERE id = :id", id=entry.id) is not None

    return await store.write(work)


async def of_finding(store: Store, repo: RepoId, name: str) -> Dismissal | None:
    sql = "SELECT * FROM dismissals WHERE finding_id = :name AND repo_id = :repo"
    return await Dismissal.one(store, sql, name=name, repo=repo)


async def of_repo(store: Store, repo: RepoId) -> list[Dismissal]:
    """Return all of a repository, the newest first."""
    sql = "SELECT * FROM dismissals WHERE repo_id = :repo ORDER BY at DESC, finding_id"
    return await Dismissal.many(store, sql, repo=repo)
