"""Environments that turns use and those kept for a session's next turn; one transaction decides who gets which.

`EnvironmentMarks` stores the marks that the newest disks of kept environments have (`sandbox.e2b.marks`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bot.models import InstallationId, RepoId, SessionId, TurnKey
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, one, run, settings, statement

MOST_DIGITS = 9
"""The most that a turn's number may have."""


class EnvironmentUse(StrEnum):
    USED = "used"
    KEPT = "kept"
    ENDING = "ending"
    """No turn may use it; whoever finds it ends it."""


class EnvironmentPurpose(StrEnum):
    WORK = "work"
    CHECKS = "checks"
    """It gets only the commit to publish: no agent, no token."""


@dataclass(frozen=True)
class EnvironmentRow(Record):
    id: str
    session_id: SessionId
    turn: int
    state: EnvironmentUse
    purpose: EnvironmentPurpose
    made_of: str
    prepared: bool
    setup_sha256: str | None
    home: dict[str, str] | None
    """The agent's home before any agent came."""
    kept_until: float | None
    updated_at: float
    bound_to: str | None
    """The data directory of the replica on whose machine it is; None if every replica reaches it."""


_KEPT_OF = """
SELECT environments.id FROM environments JOIN sessions ON sessions.id = environments.session_id
JOIN threads ON threads.id = sessions.thread_id JOIN repos ON repos.id = threads.repo_id
WHERE environments.state = 'kept'
"""


_GIVE_UP_KEPT = "UPDATE environments SET state = 'ending', updated_at = :at WHERE session_id = :id AND state = 'kept'"


async def take(store: Store, key: TurnKey, made_of: str, here: str | None = None) -> EnvironmentRow:
    """Return the turn's own, the one kept for it, or a new row under the turn's name, in this order.

    A kept one that does not fit, or is too old, is given up. One on another machine than `here` does not count: whoever
    can see it ends it."""
    at = store.now()

    def work(db: Database) -> EnvironmentRow:
        row = _used_by(db, key)
        if row is None or row.bound_to != here:
            row = _kept_for(db, key, made_of, at, here) or _intended(db, key, made_of, at, here)
        run(db, _GIVE_UP_KEPT, id=key.session, at=at)
        return row

    return await store.write(work)


async def take_for_checks(store: Store, key: TurnKey, here: str | None = None) -> EnvironmentRow:
    """Return the row of a fresh one; end what an earlier try has left under its name before you create it."""
    at = store.now()
    checks = EnvironmentPurpose.CHECKS
    return await store.write(lambda db: _intended(db, key, checks, at, here, purpose=checks))


async def for_checks(store: Store, key: TurnKey) -> EnvironmentRow | None:
    """Return the one for checks, even if no turn may use it."""
    return await by_id(store, name_of(key, EnvironmentPurpose.CHECKS))


async def used_by(store: Store, key: TurnKey) -> EnvironmentRow | None:
    return await store.read(lambda db: _used_by(db, key))


async def last_of(store: Store, key: TurnKey) -> EnvironmentRow | None:
    """Return the agent's, even if it is kept by now."""
    sql = """
    SELECT * FROM environments
    WHERE session_id = :session AND turn = :n AND purpose = 'work' AND state <> 'ending' LIMIT 1
    """
    return await EnvironmentRow.one(store, sql, session=key.session, n=key.n)


async def given_up(store: Store, session: SessionId) -> list[str]:
    """Return the environments of a session that no turn may use."""
    sql = "SELECT id FROM environments WHERE session_id = :session AND state = 'ending'"
    return [row["id"] for row in await store.many(sql, session=session)]


async def all_of_them(store: Store) -> dict[str, EnvironmentRow]:
    rows = await store.many("SELECT * FROM environments")
    return {row["id"]: EnvironmentRow.of(row) for row in rows}


async def by_id(store: Store, environment_id: str) -> EnvironmentRow | None:
    return await EnvironmentRow.one(store, "SELECT * FROM environments WHERE id = :id", id=environment_id)


async def turn_of(store: Store, environment_id: str) -> TurnKey | None:
    """Return the turn that it serves or, without a row, was made for, if any."""
    row = await store.one("SELECT session_id, turn FROM environments WHERE id = :id", id=environment_id)
    if row is not None:
        return TurnKey(SessionId(row["session_id"]), row["turn"])
    session, n, *_ = [*environment_id.split("-"), ""]
    return TurnKey(SessionId(session), int(n)) if n.isdecimal() and len(n) <= MOST_DIGITS else None


async def turns_in(store: Store, environment_id: str) -> list[TurnKey]:
    """Return the turns that it was made for or has served, in order; for one that is gone, as far as other rows say."""
    session, _, made_for = environment_id.rpartition("-")
    if not made_for.isdecimal() or len(made_for) > MOST_DIGITS:
        return []
    sql = """
    SELECT turns.n FROM turns JOIN sessions ON sessions.id = turns.session_id
    WHERE sessions.id = :session AND turns.n >= :n AND (
        turns.n = :n OR (sessions.environment_id = :id AND turns.work_started_at IS NOT NULL)
        OR EXISTS (SELECT 1 FROM machine_runs WHERE machine_runs.environment_id = :id
                   AND machine_runs.session_id = :session AND machine_runs.turn = turns.n))
    ORDER BY turns.n
    """
    found = await store.many(sql, session=session, n=int(made_for), id=environment_id)
    return [TurnKey(SessionId(session), row["n"]) for row in found]


async def note(store: Store, environment_id: str, **columns: Any) -> None:
    """Set `prepared`, `setup_sha256` or `home`."""
    names = settings(columns, {"prepared", "setup_sha256", "home"})
    sql = statement("UPDATE environments SET {names} WHERE id = :id", names=names)
    await store.run(sql, id=environment_id, **columns)


async def keep(store: Store, environment_id: str, until: float) -> None:
    """Keep it for the session's next turn, if a turn uses it."""
    sql = """
    UPDATE environments SET state = 'kept', kept_until = :until, updated_at = :at WHERE id = :id AND state = 'used'
    """
    await store.run(sql, id=environment_id, until=until, at=store.now())


async def give_up(store: Store, environment_id: str) -> None:
    sql = "UPDATE environments SET state = 'ending', updated_at = :at WHERE id = :id"
    await store.run(sql, id=environment_id, at=store.now())


async def give_up_unneeded(store: Store, environment_id: str) -> bool:
    """Give it up unless a turn under way uses it or it is kept for now; True if it may be ended."""
    sql = """
    UPDATE environments SET state = 'ending', updated_at = :at WHERE id = :id AND NOT (
        (state = 'kept' AND kept_until > :at) OR (state = 'used' AND EXISTS (
            SELECT 1 FROM turns WHERE turns.session_id = environments.session_id AND turns.n = environments.turn
            AND turns.state <> 'done')))
    """
    at = store.now()

    def work(db: Database) -> bool:
        known = one(db, "SELECT id FROM environments WHERE id = :id", id=environment_id)
        return known is None or run(db, sql, id=environment_id, at=at) == 1

    return await store.write(work)


async def give_up_kept(store: Store, session: SessionId) -> bool:
    return await store.run(_GIVE_UP_KEPT, id=session, at=store.now()) > 0


async def give_up_kept_of(store: Store, installation: InstallationId, repos: frozenset[RepoId] | None) -> None:
    """Give up what is kept for an installation, or only for some of its repositories."""
    at = store.now()
    update = "UPDATE environments SET state = 'ending', updated_at = :at WHERE id IN ({kept} AND {whose})"

    def work(db: Database) -> None:
        if repos is None:
            sql = statement(update, kept=_KEPT_OF, whose="repos.installation_id = :installation")
            run(db, sql, at=at, installation=installation)
        for repo in sorted(repos or ()):
            run(db, statement(update, kept=_KEPT_OF, whose="repos.id = :repo"), at=at, repo=repo)

    await store.write(work)


async def forget_lost(store: Store, here: str | None) -> None:
    """Forget environments on machines whose replica is no more, and those from before the store was moved. If the
    machine comes back, its sweep ends what no row names."""
    sql = """
    DELETE FROM environments WHERE (bound_to IS NOT NULL OR :is_bound = 1)
    AND COALESCE(bound_to, '') NOT IN (SELECT home FROM replicas)
    AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session_id = environments.session_id AND turns.n = environments.turn
        AND turns.state <> 'done')
    """
    await store.run(sql, is_bound=int(here is not None))


async def forget(store: Store, environment_id: str) -> None:
    sql = "DELETE FROM environments WHERE id = :id AND state = 'ending'"
    await store.run(sql, id=environment_id)


def _used_by(db: Database, key: TurnKey) -> EnvironmentRow | None:
    sql = """
    SELECT * FROM environments WHERE session_id = :session AND turn = :n AND purpose = 'work' AND state = 'used'
    """
    row = one(db, sql, session=key.session, n=key.n)
    return EnvironmentRow.of(row) if row else None


def _kept_for(db: Database, key: TurnKey, made_of: str, at: float, here: str | None) -> EnvironmentRow | None:
    sql = """
    UPDATE environments SET state = 'used', turn = :n, prepared = 0, kept_until = NULL, updated_at = :at
    WHERE session_id = :session AND state = 'kept' AND made_of = :made_of AND kept_until > :at
        AND bound_to IS :here RETURNING *
    """
    row = one(db, sql, session=key.session, n=key.n, made_of=made_of, at=at, here=here)
    return EnvironmentRow.of(row) if row else None


def name_of(key: TurnKey, purpose: EnvironmentPurpose = EnvironmentPurpose.WORK) -> str:
    return f"{key.session}-{key.n}" if purpose is EnvironmentPurpose.WORK else f"{key.session}-{key.n}-{purpose}"


def _intended(
    db: Database,
    key: TurnKey,
    made_of: str,
    at: float,
    here: str | None,
    *,
    purpose: EnvironmentPurpose = EnvironmentPurpose.WORK,
) -> EnvironmentRow:
    sql = """
    INSERT INTO environments (id, session_id, turn, state, purpose, made_of, updated_at, bound_to)
    VALUES (:id, :session, :n, 'used', :purpose, :made_of, :at, :here)
    ON CONFLICT (id) DO UPDATE SET state = 'used', turn = excluded.turn, made_of = excluded.made_of, prepared = 0,
        setup_sha256 = NULL, home = NULL, kept_until = NULL, updated_at = excluded.updated_at,
        bound_to = excluded.bound_to
    RETURNING *
    """
    values = {"id": name_of(key, purpose), "session": key.session, "n": key.n, "purpose": purpose}
    row = one(db, sql, made_of=made_of, at=at, here=here, **values)
    assert row is not None
    return EnvironmentRow.of(row)


class EnvironmentMarks:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def known(self, environment_id: str) -> frozenset[str]:
        sql = "SELECT mark FROM environment_marks WHERE environment_id = :id"
        return frozenset(row["mark"] for row in await self._store.many(sql, id=environment_id))

    async def add(self, environment_id: str, mark: str) -> None:
        await self._store.write(lambda db: _add_mark(db, environment_id, mark))

    async def settle(self, environment_id: str, mark: str, instead_of: frozenset[str]) -> None:
        """Replace only the marks known before: another process may have added one meanwhile."""

        def work(db: Database) -> None:
            for old in instead_of:
                sql = "DELETE FROM environment_marks WHERE environment_id = :id AND mark = :mark"
                run(db, sql, id=environment_id, mark=old)
            _add_mark(db, environment_id, mark)

        await self._store.write(work)

    async def forget(self, environment_id: str) -> None:
        sql = "DELETE FROM environment_marks WHERE environment_id = :id"
        await self._store.run(sql, id=environment_id)


def _add_mark(db: Database, environment_id: str, mark: str) -> None:
    sql = """
    INSERT INTO environment_marks (environment_id, mark) VALUES (:id, :mark)
    ON CONFLICT (environment_id, mark) DO NOTHING
    """
    run(db, sql, id=environment_id, mark=mark)
