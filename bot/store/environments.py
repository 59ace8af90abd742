"""Which environment a turn uses, and which is kept for its session's next: one transaction decides who gets it.

`EnvironmentMarks` keeps by what the disks of kept environments are known as the newest (`sandbox.e2b.marks`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bot.models import InstallationId, RepoId, SessionId, TurnKey
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, many, one, run, settings, statement

MOST_DIGITS = 9
"""Of a turn's number."""


class EnvironmentUse(StrEnum):
    USED = "used"
    KEPT = "kept"
    ENDING = "ending"
    """Nobody may use it any more; whoever finds it ends it."""


class EnvironmentPurpose(StrEnum):
    WORK = "work"
    CHECKS = "checks"
    """Nothing but the commit that is to be published comes in; no agent, no token."""


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
    """What lay in the agent's home before one came."""
    kept_until: float | None
    updated_at: float


_KEPT_OF = """
SELECT environments.id FROM environments JOIN sessions ON sessions.id = environments.session_id
JOIN threads ON threads.id = sessions.thread_id JOIN repos ON repos.id = threads.repo_id
WHERE environments.state = 'kept'
"""


async def take(store: Store, key: TurnKey, made_of: str) -> EnvironmentRow:
    """The turn's own, or else the one that was kept for it, or else the intent of a new one under the turn's name.

    What was kept and does not fit (or for too long) is given up."""
    at = store.now()

    def work(db: Database) -> EnvironmentRow:
        row = _used_by(db, key) or _kept_for(db, key, made_of, at) or _intended(db, key, made_of, at)
        given_up = (
            "UPDATE environments SET state = 'ending', updated_at = :at WHERE session_id = :id AND state = 'kept'"
        )
        run(db, given_up, id=key.session, at=at)
        return row

    return await store.write(work)


async def take_for_checks(store: Store, key: TurnKey) -> EnvironmentRow:
    """The intent of a fresh one; whatever an earlier try has left under its name is to be gone before."""
    at = store.now()
    return await store.write(lambda db: _intended(db, key, EnvironmentPurpose.CHECKS, at, EnvironmentPurpose.CHECKS))


async def for_checks(store: Store, key: TurnKey) -> EnvironmentRow | None:
    """Also when nobody may use it any more."""
    row = await store.read(
        lambda db: one(db, "SELECT * FROM environments WHERE id = :id", id=_name(key, EnvironmentPurpose.CHECKS))
    )
    return EnvironmentRow.of(row) if row else None


async def used_by(store: Store, key: TurnKey) -> EnvironmentRow | None:
    return await store.read(lambda db: _used_by(db, key))


async def last_of(store: Store, key: TurnKey) -> EnvironmentRow | None:
    """The agent's; also when it is kept by now."""
    sql = """
    SELECT * FROM environments
    WHERE session_id = :session AND turn = :n AND purpose = 'work' AND state <> 'ending' LIMIT 1
    """
    row = await store.read(lambda db: one(db, sql, session=key.session, n=key.n))
    return EnvironmentRow.of(row) if row else None


async def given_up(store: Store, session: SessionId) -> list[str]:
    """Environments of a session that nobody may use any more."""
    sql = "SELECT id FROM environments WHERE session_id = :session AND state = 'ending'"
    return [row["id"] for row in await store.read(lambda db: many(db, sql, session=session))]


async def all_of_them(store: Store) -> dict[str, EnvironmentRow]:
    rows = await store.read(lambda db: many(db, "SELECT * FROM environments"))
    return {row["id"]: EnvironmentRow.of(row) for row in rows}


async def turn_of(store: Store, environment_id: str) -> TurnKey | None:
    """The turn that it serves or, without a row, was made for; None if it was made for none."""
    row = await store.read(
        lambda db: one(db, "SELECT session_id, turn FROM environments WHERE id = :id", id=environment_id)
    )
    if row is not None:
        return TurnKey(SessionId(row["session_id"]), row["turn"])
    session, n, *_ = [*environment_id.split("-"), ""]
    return TurnKey(SessionId(session), int(n)) if n.isdecimal() and len(n) <= MOST_DIGITS else None


async def turns_in(store: Store, environment_id: str) -> list[TurnKey]:
    """The turns that it was made for or has served, in order; for one that is gone, as far as other rows tell."""
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
    found = await store.read(lambda db: many(db, sql, session=session, n=int(made_for), id=environment_id))
    return [TurnKey(SessionId(session), row["n"]) for row in found]


async def note(store: Store, environment_id: str, **columns: Any) -> None:
    """`prepared`, `setup_sha256` and `home`, as they become true."""
    names = settings(columns, {"prepared", "setup_sha256", "home"})
    sql = statement("UPDATE environments SET {names} WHERE id = :id", names=names)
    await store.write(lambda db: run(db, sql, id=environment_id, **columns))


async def keep(store: Store, environment_id: str, until: float) -> None:
    """Keep it for the session's next turn; only while a turn uses it."""
    sql = """
    UPDATE environments SET state = 'kept', kept_until = :until, updated_at = :at WHERE id = :id AND state = 'used'
    """
    at = store.now()
    await store.write(lambda db: run(db, sql, id=environment_id, until=until, at=at))


async def give_up(store: Store, environment_id: str) -> None:
    sql = "UPDATE environments SET state = 'ending', updated_at = :at WHERE id = :id"
    at = store.now()
    await store.write(lambda db: run(db, sql, id=environment_id, at=at))


async def give_up_unneeded(store: Store, environment_id: str) -> bool:
    """Unless a turn under way uses it, or it is kept and its time has not come. True: it may be ended now."""
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
    """True if there was one."""
    sql = "UPDATE environments SET state = 'ending', updated_at = :at WHERE session_id = :id AND state = 'kept'"
    at = store.now()
    return await store.write(lambda db: run(db, sql, id=session, at=at)) > 0


async def give_up_kept_of(store: Store, installation: InstallationId, repos: frozenset[RepoId] | None) -> None:
    """Give up what is kept for an installation, or for these of its repositories."""
    at = store.now()

    update = "UPDATE environments SET state = 'ending', updated_at = :at WHERE id IN ({kept} AND {whose})"

    def work(db: Database) -> None:
        if repos is None:
            sql = statement(update, kept=_KEPT_OF, whose="repos.installation_id = :installation")
            run(db, sql, at=at, installation=installation)
        for repo in sorted(repos or ()):
            run(db, statement(update, kept=_KEPT_OF, whose="repos.id = :repo"), at=at, repo=repo)

    await store.write(work)


async def forget(store: Store, environment_id: str) -> None:
    sql = "DELETE FROM environments WHERE id = :id AND state = 'ending'"
    await store.write(lambda db: run(db, sql, id=environment_id))


def _used_by(db: Database, key: TurnKey) -> EnvironmentRow | None:
    sql = """
    SELECT * FROM environments WHERE session_id = :session AND turn = :n AND purpose = 'work' AND state = 'used'
    """
    row = one(db, sql, session=key.session, n=key.n)
    return EnvironmentRow.of(row) if row else None


def _kept_for(db: Database, key: TurnKey, made_of: str, at: float) -> EnvironmentRow | None:
    sql = """
    UPDATE environments SET state = 'used', turn = :n, prepared = 0, kept_until = NULL, updated_at = :at
    WHERE session_id = :session AND state = 'kept' AND made_of = :made_of AND kept_until > :at RETURNING *
    """
    row = one(db, sql, session=key.session, n=key.n, made_of=made_of, at=at)
    return EnvironmentRow.of(row) if row else None


def _name(key: TurnKey, purpose: EnvironmentPurpose) -> str:
    return f"{key.session}-{key.n}" if purpose is EnvironmentPurpose.WORK else f"{key.session}-{key.n}-{purpose}"


def _intended(
    db: Database, key: TurnKey, made_of: str, at: float, purpose: EnvironmentPurpose = EnvironmentPurpose.WORK
) -> EnvironmentRow:
    sql = """
    INSERT INTO environments (id, session_id, turn, state, purpose, made_of, updated_at)
    VALUES (:id, :session, :n, 'used', :purpose, :made_of, :at)
    ON CONFLICT (id) DO UPDATE SET state = 'used', turn = excluded.turn, made_of = excluded.made_of, prepared = 0,
        setup_sha256 = NULL, home = NULL, kept_until = NULL, updated_at = excluded.updated_at
    RETURNING *
    """
    values = {"id": _name(key, purpose), "session": key.session, "n": key.n, "purpose": purpose}
    row = one(db, sql, made_of=made_of, at=at, **values)
    assert row is not None
    return EnvironmentRow.of(row)


class EnvironmentMarks:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def known(self, environment_id: str) -> frozenset[str]:
        sql = "SELECT mark FROM environment_marks WHERE environment_id = :id"
        return frozenset(row["mark"] for row in await self._store.read(lambda db: many(db, sql, id=environment_id)))

    async def add(self, environment_id: str, mark: str) -> None:
        await self._store.write(lambda db: _add_mark(db, environment_id, mark))

    async def settle(self, environment_id: str, mark: str, instead_of: frozenset[str]) -> None:
        """Replace only those that were known before: another process may have added one meanwhile."""

        def work(db: Database) -> None:
            for old in instead_of:
                sql = "DELETE FROM environment_marks WHERE environment_id = :id AND mark = :mark"
                run(db, sql, id=environment_id, mark=old)
            _add_mark(db, environment_id, mark)

        await self._store.write(work)

    async def forget(self, environment_id: str) -> None:
        sql = "DELETE FROM environment_marks WHERE environment_id = :id"
        await self._store.write(lambda db: run(db, sql, id=environment_id))


def _add_mark(db: Database, environment_id: str, mark: str) -> None:
    sql = """
    INSERT INTO environment_marks (environment_id, mark) VALUES (:id, :mark)
    ON CONFLICT (environment_id, mark) DO NOTHING
    """
    run(db, sql, id=environment_id, mark=mark)
