"""The rows of turns: how one moves from queued to done, and that an outcome once said stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bot.errors import StoreError
from bot.models import Outcome, SessionId, Step, TurnKey, TurnState
from bot.store import events
from bot.store.base import Store
from bot.store.records import Turn, stored
from bot.store.rows import Database, Row, many, one, run

SETTABLE = frozenset(Turn.__annotations__)

SESSION_SETTABLE = {"agent_session_id", "budget_usd", "branch", "pull_number", "pull_url", "environment_id"}


@dataclass(frozen=True)
class Found:
    """What a step found out beyond its own turn's columns; stored in the transaction that leaves the step."""

    ending: tuple[Outcome, str | None] | None = None
    """How the turn will have ended, unless that was said before."""
    session: Mapping[str, Any] = field(default_factory=dict)
    """Columns of SESSION_SETTABLE."""
    note: str | None = None
    """Stored among the turn's events."""


NOTHING_FOUND = Found()

_SELECT = """
SELECT turns.*, sessions.thread_id, threads.repo_id, repos.installation_id
FROM turns JOIN sessions ON sessions.id = turns.session_id JOIN threads ON threads.id = sessions.thread_id
JOIN repos ON repos.id = threads.repo_id
"""
_ONE = "WHERE turns.session_id = :session AND turns.n = :n"
_OUTCOME = "SELECT outcome FROM turns WHERE session_id = :session AND n = :n"


async def turn(store: Store, key: TurnKey) -> Turn:
    row = await store.read(lambda db: one(db, _SELECT + _ONE, session=key.session, n=key.n))
    if row is None:
        raise StoreError(f"There is no turn {key.n} of session {key.session}.")
    return Turn.of(row)


async def turns_of(store: Store, session: SessionId) -> list[Turn]:
    """In their order."""
    return await store.read(lambda db: of_session(db, session))


def of_session(db: Database, session: SessionId) -> list[Turn]:
    """`turns_of` as a part of a larger look."""
    sql = _SELECT + "WHERE turns.session_id = :session ORDER BY turns.n"
    return [Turn.of(row) for row in many(db, sql, session=session)]


async def queued(store: Store) -> list[Turn]:
    """In the order in which they were asked for."""
    return await _in_state(store, TurnState.QUEUED)


async def running(store: Store) -> list[Turn]:
    return await _in_state(store, TurnState.RUNNING)


async def start(store: Store, key: TurnKey) -> bool:
    """It is in our hands, for the first time or again after a crash; False when it is done."""
    sql = """
    UPDATE turns SET state = 'running', started_at = COALESCE(started_at, :at), attempts = attempts + 1
    WHERE session_id = :session AND n = :n AND state <> 'done'
    """
    at = store.now()
    return await store.write(lambda db: run(db, sql, session=key.session, n=key.n, at=at)) == 1


async def advance(store: Store, key: TurnKey, step: Step, found: Found = NOTHING_FOUND, **columns: Any) -> bool:
    """Enter a step, with what the one before it found out; False (and nothing changed) when the turn is done."""
    at = store.now()

    def work(db: Database) -> bool:
        row = one(db, _SELECT + _ONE, session=key.session, n=key.n)
        if row is None or row["state"] == TurnState.DONE:
            return False
        times = {step.value: at, **msgspec.json.decode(row["step_times"])}  # the first time counts
        _update(db, key, {**_checked(columns), "step": step, "step_times": stored(times)})
        if found.ending is not None:
            _decide(db, key, *found.ending)
        if found.session:
            set_session(db, key.session, found.session)
        if found.note:
            line = msgspec.json.encode({"type": "forgehand", "note": found.note}).decode()
            events.note(db, key, "note", line, at)
        return True

    return await store.write(work)


async def update_turn(store: Store, key: TurnKey, **columns: Any) -> None:
    """Set columns of SETTABLE; lists and dictionaries are stored as JSON."""
    checked = _checked(columns)
    await store.write(lambda db: _update(db, key, checked))


async def request_stop(store: Store, key: TurnKey, login: str) -> bool:
    """True for the first who asks while there is something to stop."""
    sql = """
    UPDATE turns SET stop_requested = :login, stop_at = :at
    WHERE session_id = :session AND n = :n AND stop_requested IS NULL AND state <> 'done'
    """
    at = store.now()
    return await store.write(lambda db: run(db, sql, session=key.session, n=key.n, login=login, at=at)) == 1


async def begin_push(store: Store, key: TurnKey) -> bool:
    """Whether it may be published; from here on nobody says that it was stopped. True again after a crash."""
    sql = """
    UPDATE turns SET push_began = COALESCE(push_began, :at)
    WHERE session_id = :session AND n = :n AND outcome IS NULL AND (push_began IS NOT NULL OR stop_requested IS NULL)
    """
    at = store.now()
    return await store.write(lambda db: run(db, sql, session=key.session, n=key.n, at=at)) == 1


async def decide_stopped(store: Store, key: TurnKey, detail: str) -> Outcome | None:
    """Say that it was stopped, unless its end was said before or a push has begun; how it ends, where that is known."""
    sql = """
    UPDATE turns SET outcome = 'stopped', detail = :detail
    WHERE session_id = :session AND n = :n AND outcome IS NULL AND push_began IS NULL
    """

    def work(db: Database) -> Outcome | None:
        run(db, sql, session=key.session, n=key.n, detail=detail)
        row = one(db, _OUTCOME, session=key.session, n=key.n)
        return Outcome(row["outcome"]) if row and row["outcome"] else None

    return await store.write(work)


async def cancel_queued(store: Store, key: TurnKey, detail: str) -> bool:
    """End a turn that nobody has taken up, with the words that waited for it; False when it is no longer waiting."""
    sql = """
    UPDATE turns SET state = 'done', outcome = 'stopped', detail = :detail, finished_at = :at
    WHERE session_id = :session AND n = :n AND state = 'queued'
    """
    words = "UPDATE messages SET state = 'dropped' WHERE session_id = :session AND turn = :n AND state = 'waiting'"
    at = store.now()

    def work(db: Database) -> bool:
        if not run(db, sql, session=key.session, n=key.n, detail=detail, at=at):
            return False
        run(db, words, session=key.session, n=key.n)
        return True

    return await store.write(work)


async def decide(store: Store, key: TurnKey, outcome: Outcome, detail: str | None = None) -> Outcome:
    """Say how it ended, unless that was said before; the outcome that counts. The turn has yet to be settled."""
    return await store.write(lambda db: _decide(db, key, outcome, detail))


async def finish(store: Store, key: TurnKey, outcome: Outcome, detail: str | None = None) -> Outcome:
    """Nothing is left to do for it; an outcome that was said before stays. The outcome that counts."""
    at = store.now()

    def work(db: Database) -> Outcome:
        counts = _decide(db, key, outcome, detail)
        sql = """
        UPDATE turns SET state = 'done', finished_at = COALESCE(finished_at, :at)
        WHERE session_id = :session AND n = :n
        """
        run(db, sql, session=key.session, n=key.n, at=at)
        return counts

    return await store.write(work)


def _decide(db: Database, key: TurnKey, outcome: Outcome, detail: str | None) -> Outcome:
    sql = """
    UPDATE turns SET outcome = :outcome, detail = :detail
    WHERE session_id = :session AND n = :n AND outcome IS NULL
    """
    run(db, sql, session=key.session, n=key.n, outcome=outcome, detail=detail)
    row = one(db, _OUTCOME, session=key.session, n=key.n)
    if row is None:
        raise StoreError(f"There is no turn {key.n} of session {key.session}.")
    return Outcome(row["outcome"])


def set_session(db: Database, session: SessionId, columns: Mapping[str, Any]) -> None:
    """As a part of a larger transaction."""
    if unknown := set(columns) - SESSION_SETTABLE:
        raise ValueError(f"not a column that may be set: {', '.join(sorted(unknown))}")
    settings = ", ".join(f"{name} = :{name}" for name in columns)
    sql = f"UPDATE sessions SET {settings} WHERE id = :id"  # noqa: S608 - names from the list above only
    run(db, sql, id=session, **columns)


async def _in_state(store: Store, state: TurnState) -> list[Turn]:
    sql = _SELECT + "WHERE turns.state = :state ORDER BY turns.created_at, turns.session_id, turns.n"
    rows: list[Row] = await store.read(lambda db: many(db, sql, state=state))
    return [Turn.of(row) for row in rows]


def _checked(columns: dict[str, Any]) -> dict[str, Any]:
    if unknown := set(columns) - SETTABLE:
        raise ValueError(f"not a column that may be set: {', '.join(sorted(unknown))}")
    return {name: stored(value) for name, value in columns.items()}


def _update(db: Database, key: TurnKey, columns: dict[str, Any]) -> int:
    if not columns:
        return 0
    settings = ", ".join(f"{name} = :{name}" for name in columns)
    sql = f"UPDATE turns SET {settings} WHERE session_id = :session AND n = :key_n"  # noqa: S608 - names from SETTABLE
    return run(db, sql, session=key.session, key_n=key.n, **columns)
