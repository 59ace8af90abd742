"""The dashboard of each repository: whether it is wanted, its issue, and the rows that it shows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from bot.models import InstallationId, Outcome, Repo, RepoId, SessionId, Thread, TurnKey, TurnState
from bot.store import repos
from bot.store.approvals import Approval
from bot.store.base import Store
from bot.store.records import OfRepo, OfTurn
from bot.store.rows import Database, many, one, run, statement

FAILING_SECONDS = 7 * 86_400.0


class DashboardState(StrEnum):
    ON = "on"
    OFF = "off"
    GONE = "gone"
    """Its issue was moved or deleted, and it is left at that."""


@dataclass(frozen=True)
class Dashboard(OfRepo):
    state: DashboardState
    number: int | None
    """None: planned, not known to exist yet."""
    by_config: bool
    asked_by: str | None
    remade: bool
    body_sha256: str | None
    still_sha256: str | None
    """Digest of its text without the money."""
    spoilt: int
    """How often someone else has edited it."""
    restored: int
    edited_at: float

    @property
    def thread(self) -> Thread:
        """Its issue; number 0 while there is none."""
        return Thread(self.repo, self.installation_id, self.number or 0, False)


@dataclass(frozen=True)
class ShownTurn(OfTurn):
    """A turn in a row of a dashboard."""

    state: TurnState
    outcome: Outcome | None
    number: int
    is_pull: bool
    kind: str
    requester: str
    prompt: str
    created_at: float
    started_at: float | None
    finished_at: float | None
    comment_id: int | None


@dataclass(frozen=True)
class ShownApproval:
    approval: Approval
    turn: ShownTurn


_SELECT = """
SELECT dashboards.*, repos.installation_id, repos.owner, repos.name, repos.private, repos.default_branch
FROM dashboards JOIN repos ON repos.id = dashboards.repo_id AND repos.removed_at IS NULL
"""
_OUTDATED = "body_sha256 = NULL, still_sha256 = NULL, spoilt = spoilt + 1"
_TURNS = """
SELECT turns.session_id, turns.n AS turn, turns.state, turns.outcome, turns.number, turns.kind, turns.requester,
    turns.prompt, turns.created_at, turns.started_at, turns.finished_at, comments.comment_id,
    CASE WHEN threads.is_pull = 1 OR turns.number <> threads.number THEN 1 ELSE 0 END AS is_pull
FROM turns JOIN sessions ON sessions.id = turns.session_id JOIN threads ON threads.id = sessions.thread_id
LEFT JOIN comments ON comments.session_id = turns.session_id AND comments.turn = turns.n
WHERE {where} ORDER BY turns.created_at, turns.session_id, turns.n LIMIT :most
"""
_IN_STATE = "turns.state = :state AND turns.in_repo = :repo"
_FAILING = """turns.in_repo = :repo AND turns.created_at > :since
    AND turns.outcome IN ('failed', 'killed', 'timed_out', 'over_budget', 'refused')
    AND turns.state = 'done' AND NOT EXISTS (
        SELECT 1 FROM turns AS later WHERE later.session_id = turns.session_id AND later.n > turns.n)"""
_WAITING = """
SELECT approvals.* FROM approvals JOIN sessions ON sessions.id = approvals.session_id
JOIN threads ON threads.id = sessions.thread_id
WHERE approvals.state = 'open' AND threads.repo_id = :repo ORDER BY approvals.asked_at, approvals.id LIMIT :most
"""
_PULLS = """
SELECT DISTINCT sessions.pull_number AS number FROM sessions JOIN threads ON threads.id = sessions.thread_id
WHERE threads.repo_id = :repo AND sessions.pull_number IS NOT NULL ORDER BY 1 DESC LIMIT :most
"""


async def get(store: Store, repo: RepoId) -> Dashboard | None:
    return await Dashboard.one(store, _SELECT + "WHERE dashboards.repo_id = :repo", repo=repo)


async def shown_anywhere(store: Store) -> list[RepoId]:
    """Return the repositories with a dashboard that may need an edit."""
    sql = _SELECT + "WHERE dashboards.state = 'on' OR dashboards.body_sha256 IS NULL ORDER BY dashboards.repo_id"
    return [one.repo_id for one in await Dashboard.many(store, sql) if one.state is not DashboardState.GONE]


async def of_sessions(store: Store, sessions: Collection[SessionId]) -> set[RepoId]:
    """Return the repositories of these sessions that have a dashboard."""
    sql = """
    SELECT dashboards.repo_id FROM sessions JOIN threads ON threads.id = sessions.thread_id
    JOIN dashboards ON dashboards.repo_id = threads.repo_id WHERE sessions.id = :session AND dashboards.state = 'on'
    """

    def work(db: Database) -> set[RepoId]:
        return {RepoId(row["repo_id"]) for session in sessions for row in many(db, sql, session=session)}

    return await store.read(work)


async def heard_config(store: Store, repo: Repo, installation: InstallationId, *, wanted: bool) -> None:
    """Follow the repository's config: a change in it switches the dashboard; its issue's state counts until then."""
    known = await get(store, repo.id)
    if (known is not None and known.by_config) == wanted:
        return
    at = store.now()

    def work(db: Database) -> None:
        _put(db, repo, installation, at)
        if wanted:
            on = "UPDATE dashboards SET by_config = 1, state = CASE state WHEN 'gone' THEN state ELSE 'on' END, {out}"
        else:
            on = "UPDATE dashboards SET by_config = 0, state = CASE WHEN asked_by IS NULL AND state = 'on' THEN 'off' "
            on += "ELSE state END, {out}"
        run(db, statement(on + " WHERE repo_id = :repo", out=_OUTDATED), repo=repo.id)

    await store.write(work)


async def switch_on(store: Store, repo: Repo, installation: InstallationId, login: str) -> None:
    """Note a person's wish. If its issue was moved or deleted, another one is opened."""
    at = store.now()
    sql = """
    UPDATE dashboards SET asked_by = :login, number = CASE state WHEN 'gone' THEN NULL ELSE number END,
        remade = 0, state = 'on', {out} WHERE repo_id = :repo
    """

    def work(db: Database) -> None:
        _put(db, repo, installation, at)
        run(db, statement(sql, out=_OUTDATED), repo=repo.id, login=login)

    await store.write(work)


async def made(store: Store, repo: RepoId, number: int) -> None:
    await store.run("UPDATE dashboards SET number = :number WHERE repo_id = :repo", repo=repo, number=number)


async def shown(store: Store, before: Dashboard, body_sha256: str, still_sha256: str) -> None:
    """Note the text that we sent, unless someone has edited it since `before` was read."""
    sql = """
    UPDATE dashboards SET body_sha256 = :body, still_sha256 = :still, edited_at = :at
    WHERE repo_id = :repo AND spoilt = :spoilt
    """
    values = {"body": body_sha256, "still": still_sha256, "at": store.now()}
    await store.run(sql, repo=before.repo_id, spoilt=before.spoilt, **values)


async def spoilt(store: Store, repo: RepoId, *, by_bot: bool) -> None:
    sql = statement("UPDATE dashboards SET {out}, restored = restored + :bot WHERE repo_id = :repo", out=_OUTDATED)
    await store.run(sql, repo=repo, bot=int(by_bot))


async def toggled(store: Store, repo: RepoId, *, is_open: bool) -> None:
    sql = "UPDATE dashboards SET state = :state, {out} WHERE repo_id = :repo AND state IN ('on', 'off')"
    state = DashboardState.ON if is_open else DashboardState.OFF
    await store.run(statement(sql, out=_OUTDATED), repo=repo, state=state)


async def moved(store: Store, repo: RepoId) -> None:
    await store.run("UPDATE dashboards SET state = 'gone' WHERE repo_id = :repo", repo=repo)


async def deleted(store: Store, repo: RepoId, number: int, *, again: bool) -> None:
    """Forget a deleted issue. Once, another is opened, if it is still wanted (`again`)."""
    sql = """
    UPDATE dashboards SET state = CASE WHEN state = 'on' AND remade = 0 AND :again = 1 THEN 'on' ELSE 'gone' END,
        remade = 1, number = NULL, {out} WHERE repo_id = :repo AND number = :number
    """
    await store.run(statement(sql, out=_OUTDATED), repo=repo, number=number, again=int(again))


async def in_state(store: Store, repo: RepoId, state: TurnState, most: int) -> tuple[list[ShownTurn], int]:
    """Return the oldest turns of the repository in a state, and how many there are in all."""
    values = {"repo": repo, "state": state}
    count = statement("SELECT COUNT(*) AS many FROM turns WHERE {where}", where=_IN_STATE)

    def work(db: Database) -> tuple[list[ShownTurn], int]:
        rows = many(db, statement(_TURNS, where=_IN_STATE), **values, most=most)
        counted = one(db, count, **values)
        assert counted is not None
        return [ShownTurn.of(row) for row in rows], counted["many"]

    return await store.read(work)


async def failing(store: Store, repo: RepoId, most: int) -> list[ShownTurn]:
    """Return last turns of sessions that came to nothing within a week."""
    sql, since = statement(_TURNS, where=_FAILING), store.now() - FAILING_SECONDS
    return await ShownTurn.many(store, sql, repo=repo, since=since, most=most)


async def waiting(store: Store, repo: RepoId, most: int) -> list[ShownApproval]:
    """Return what waits for a yes, oldest first."""
    where = "turns.session_id = :session AND turns.n = :n"

    def work(db: Database) -> list[ShownApproval]:
        found = []
        for row in many(db, _WAITING, repo=repo, most=most):
            approval = Approval.of(row)
            key: TurnKey = approval.key
            turn = one(db, statement(_TURNS, where=where), session=key.session, n=key.n, most=1)
            if turn is not None:
                found.append(ShownApproval(approval, ShownTurn.of(turn)))
        return found

    return await store.read(work)


async def pulls(store: Store, repo: RepoId, most: int) -> list[int]:
    """Return the newest pull requests that our sessions work on."""
    return [int(row["number"]) for row in await store.many(_PULLS, repo=repo, most=most)]


def _put(db: Database, repo: Repo, installation: InstallationId, at: float) -> None:
    repos.put_repo(db, repo, installation, at)
    sql = """
    INSERT INTO dashboards (repo_id, state, by_config) VALUES (:repo, 'off', 0) ON CONFLICT (repo_id) DO NOTHING
    """
    run(db, sql, repo=repo.id)
