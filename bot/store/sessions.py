"""Sessions and their turns: how a request becomes a turn, how it moves on, and how it ends."""

from __future__ import annotations

import secrets
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec

from bot.commands.options import NO_OPTIONS
from bot.errors import StoreError
from bot.kinds import TRAITS
from bot.kinds.shape import Aim, ByToken, Places, TurnPart, WorkEstimate, with_parts
from bot.models import Outcome, SessionId, Step, Thread, TurnKey, TurnState
from bot.store import bulletins, ci, conversation, deliveries, posts, repos, spend, turn_figures
from bot.store.base import Store
from bot.store.records import NewTurn, OpenTurn, Session, SessionSummary, Turn, stored
from bot.store.rows import Database, Row, column, many, one, run, settings, statement
from bot.store.sought import EVERYTHING, Sought

__all__ = ["NewTurn", "Session", "SessionSummary", "Turn"]

SETTABLE = frozenset(Turn.__annotations__) - {"payload"}
SESSION_SETTABLE = {"agent_session_id", "budget_usd", "branch", "pull_number", "pull_url", "environment_id"}


@dataclass(frozen=True)
class StepResult:
    """A step's results beyond the columns of its turn; stored in the transaction that leaves the step."""

    ending: tuple[Outcome, str | None] | None = None
    """Its outcome and detail, unless they were stated before."""
    session: Mapping[str, Any] = field(default_factory=dict)
    """Columns of SESSION_SETTABLE."""
    parts: tuple[TurnPart, ...] = ()
    """Parts that replace those of the same type."""
    note: str | None = None
    """A line for the turn's events."""


NO_RESULT = StepResult()

_SELECT_TURN = """
SELECT turns.*, sessions.thread_id, threads.repo_id, repos.installation_id
FROM turns JOIN sessions ON sessions.id = turns.session_id JOIN threads ON threads.id = sessions.thread_id
JOIN repos ON repos.id = threads.repo_id
"""
_ONE = "WHERE turns.session_id = :session AND turns.n = :n"
_OUTCOME = "SELECT outcome FROM turns WHERE session_id = :session AND n = :n"


async def turn(store: Store, key: TurnKey) -> Turn:
    row = await store.one(_SELECT_TURN + _ONE, session=key.session, n=key.n)
    if row is None:
        raise StoreError(f"There is no turn {key.n} of session {key.session}.")
    return Turn.of(row)


async def turns_of(store: Store, session: SessionId) -> list[Turn]:
    return await store.read(lambda db: of_session(db, session))


def of_session(db: Database, session: SessionId) -> list[Turn]:
    """Do what `turns_of` does, within a larger read."""
    sql = _SELECT_TURN + "WHERE turns.session_id = :session ORDER BY turns.n"
    return [Turn.of(row) for row in many(db, sql, session=session)]


async def queued(store: Store) -> list[Turn]:
    return await _in_state(store, TurnState.QUEUED)


async def running(store: Store) -> list[Turn]:
    return await _in_state(store, TurnState.RUNNING)


async def start(store: Store, key: TurnKey) -> bool:
    """Take it up; False if it is done."""
    sql = """
    UPDATE turns SET state = 'running', started_at = COALESCE(started_at, :at), attempts = attempts + 1
    WHERE session_id = :session AND n = :n AND state <> 'done'
    """
    return await store.run(sql, session=key.session, n=key.n, at=store.now()) == 1


async def advance(store: Store, key: TurnKey, step: Step, result: StepResult = NO_RESULT, **columns: Any) -> bool:
    """Enter a step with the results of the one before; False, without any change, if the turn is done."""
    at = store.now()

    def work(db: Database) -> bool:
        row = one(db, _SELECT_TURN + _ONE, session=key.session, n=key.n)
        if row is None or row["state"] == TurnState.DONE:
            return False
        times = {step.value: at, **msgspec.json.decode(row["step_times"])}  # the first time counts
        _put_parts(db, key, row, result.parts)
        _update(db, key, {**_checked(columns), "step": step, "step_times": stored(times)})
        if result.ending is not None:
            _decide(db, key, *result.ending)
        if result.session:
            set_session(db, key.session, result.session)
        if result.note:
            line = msgspec.json.encode({"type": "forgehand", "note": result.note}).decode()
            conversation.note_event(db, key, conversation.NOTE_KIND, line, at)
        return True

    return await store.write(work)


async def update_turn(store: Store, key: TurnKey, *parts: TurnPart, **columns: Any) -> None:
    """Set columns of SETTABLE; lists and dictionaries are stored as JSON."""
    checked = _checked(columns)

    def work(db: Database) -> None:
        if parts:
            _put_parts(db, key, one(db, _SELECT_TURN + _ONE, session=key.session, n=key.n), parts)
        _update(db, key, checked)

    await store.write(work)


async def request_stop(store: Store, key: TurnKey, login: str) -> bool:
    """Note who wants it stopped; True for the first while there is something to stop."""
    sql = """
    UPDATE turns SET stop_requested = :login, stop_at = :at
    WHERE session_id = :session AND n = :n AND stop_requested IS NULL AND state <> 'done'
    """
    return await store.run(sql, session=key.session, n=key.n, login=login, at=store.now()) == 1


async def begin_push(store: Store, key: TurnKey) -> bool:
    """Decide whether it may be published; from then on it cannot be stopped. True again after a crash."""
    sql = """
    UPDATE turns SET push_began = COALESCE(push_began, :at)
    WHERE session_id = :session AND n = :n AND outcome IS NULL AND (push_began IS NOT NULL OR stop_requested IS NULL)
    """
    return await store.run(sql, session=key.session, n=key.n, at=store.now()) == 1


async def decide_stopped(store: Store, key: TurnKey, detail: str) -> Outcome | None:
    """State that it was stopped, unless it has an outcome or a push has begun; return the outcome, if any."""
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
    """End a queued turn and drop the words that waited for it; False if it has started."""
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
        bulletins.put_ended(db, key, Outcome.STOPPED, at)
        return True

    return await store.write(work)


async def decide(store: Store, key: TurnKey, outcome: Outcome, detail: str | None = None) -> Outcome:
    """State its outcome, unless it has one; return the one that counts. The turn still has to be settled."""
    return await store.write(lambda db: _decide(db, key, outcome, detail))


async def finish(store: Store, key: TurnKey, outcome: Outcome, detail: str | None = None) -> Outcome:
    """End it, with this outcome unless it has one; return the one that counts."""
    at = store.now()

    def work(db: Database) -> Outcome:
        counts = _decide(db, key, outcome, detail)
        sql = """
        UPDATE turns SET state = 'done', finished_at = COALESCE(finished_at, :at)
        WHERE session_id = :session AND n = :n
        """
        run(db, sql, session=key.session, n=key.n, at=at)
        if (row := one(db, _SELECT_TURN + _ONE, session=key.session, n=key.n)) is not None:
            ended = Turn.of(row)
            turn_figures.put(db, ended, ended.finished_at or at)
            bulletins.put_ended(db, key, counts, at)
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
    """Do what `update_session` does, within a larger transaction."""
    sql = statement("UPDATE sessions SET {names} WHERE id = :id", names=settings(columns, SESSION_SETTABLE))
    run(db, sql, id=session, **columns)


async def _in_state(store: Store, state: TurnState) -> list[Turn]:
    sql = _SELECT_TURN + "WHERE turns.state = :state ORDER BY turns.created_at, turns.session_id, turns.n"
    return await Turn.many(store, sql, state=state)


def _checked(columns: dict[str, Any]) -> dict[str, Any]:
    return {column(name, SETTABLE): stored(value) for name, value in columns.items()}


def _put_parts(db: Database, key: TurnKey, row: Row | None, parts: Iterable[TurnPart]) -> None:
    if row is not None and parts:
        _update(db, key, {"payload": stored(with_parts(msgspec.json.decode(row["payload"]), parts))})


def _update(db: Database, key: TurnKey, columns: dict[str, Any]) -> None:
    if columns:
        names = settings(columns, SETTABLE | {"step", "step_times", "payload"})
        sql = statement("UPDATE turns SET {names} WHERE session_id = :session AND n = :key_n", names=names)
        run(db, sql, session=key.session, key_n=key.n, **columns)


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


async def open_turns(store: Store) -> list[OpenTurn]:
    """Return turns that wait or run, in the order of their requests."""
    return await OpenTurn.many(store, _STANDING)


async def latest_seconds(store: Store, limit: int) -> list[float]:
    return [float(row["seconds"]) for row in await store.many(_LATELY, limit=limit)]


_ALPHABET = string.ascii_lowercase + string.digits

_SELECT = """
SELECT sessions.*, threads.repo_id, threads.number, threads.is_pull, repos.installation_id, repos.owner, repos.name,
       repos.private, repos.default_branch
FROM sessions JOIN threads ON threads.id = sessions.thread_id JOIN repos ON repos.id = threads.repo_id
"""

_LATEST = """
SELECT turns.session_id, turns.n FROM turns JOIN sessions ON sessions.id = turns.session_id
WHERE sessions.thread_id = :thread_id ORDER BY sessions.created_at DESC, sessions.id, turns.n DESC LIMIT 1
"""

_ASKED = [one.name for one in fields(NewTurn) if one.name in Turn.__dataclass_fields__ and one.name != "options"]

_LISTING = """
SELECT sessions.id, repos.owner || '/' || repos.name AS repo, threads.number, last.state, last.outcome, last.n AS turns,
       last.requester, sessions.pull_url, sessions.created_at, last.finished_at, last.replica,
       COALESCE((SELECT SUM(spend.cost_usd) FROM spend WHERE spend.session_id = sessions.id), 0.0) AS cost_usd
FROM sessions JOIN threads ON threads.id = sessions.thread_id JOIN repos ON repos.id = threads.repo_id
JOIN turns AS last ON last.session_id = sessions.id
     AND last.n = (SELECT MAX(n) FROM turns WHERE turns.session_id = sessions.id)
WHERE {sought} ORDER BY sessions.created_at DESC, sessions.id LIMIT :limit
"""
_SOUGHT = {
    "repo": "repos.owner || '/' || repos.name",
    "state": "last.state",
    "outcome": "last.outcome",
    "by": "last.requester",
    "since": "sessions.created_at",
}


async def begin_turn(store: Store, new: NewTurn, *, outdates: TurnKey | None = None) -> TurnKey | None:
    """Queue it as the next turn of its thread's session, creating the session if needed, and plan its live comment.
    The comment of the turn that it `outdates` is written again.

    None: its source has started a turn before (see `by_source`), or its wish was taken back."""
    at = store.now()

    def work(db: Database) -> TurnKey | None:
        key = put_turn(db, new, at)
        if key is not None and outdates is not None:
            posts.outdate(db, outdates)
        return key

    return await store.write(work)


async def session(store: Store, session_id: SessionId) -> Session:
    row = await store.one(_SELECT + " WHERE sessions.id = :id", id=session_id)
    if row is None:
        raise StoreError(f"There is no session {session_id}.")
    return Session.of(row)


async def by_source(store: Store, source: str) -> TurnKey | None:
    row = await store.one("SELECT session_id, n FROM turns WHERE source = :source", source=source)
    return TurnKey(row["session_id"], row["n"]) if row else None


async def latest(store: Store, thread: Thread) -> Turn | None:
    """Return the last turn on the thread in any state: the one that `stop` and `retry` mean."""

    def work(db: Database) -> TurnKey | None:
        row = one(db, _LATEST, thread_id=repos.home_of(db, thread.repo.id, thread.number))
        return TurnKey(row["session_id"], row["n"]) if row else None

    key = await store.read(work)
    return await turn(store, key) if key else None


async def update_session(store: Store, session_id: SessionId, **columns: Any) -> None:
    await store.write(lambda db: set_session(db, session_id, columns))


async def listing(store: Store, sought: Sought = EVERYTHING) -> list[SessionSummary]:
    sql = statement(_LISTING, sought=sought.where(_SOUGHT))
    return await SessionSummary.many(store, sql, **sought.values)


def put_turn(db: Database, new: NewTurn, at: float) -> TurnKey | None:
    """Do what `begin_turn` does, within a larger transaction."""
    known = one(db, "SELECT n FROM turns WHERE source = :source", source=new.source)
    if known or ci.was_taken_back(db, new.source):
        return None
    thread_id = repos.put_thread(db, new.thread, at)
    last = one(db, _LATEST, thread_id=thread_id)
    key = TurnKey(last["session_id"], last["n"] + 1) if last else TurnKey(_new_session(db, thread_id, at), 1)
    columns = {name: stored(getattr(new, name)) for name in _ASKED} | {
        "options": stored(new.options) if new.options != NO_OPTIONS else None,
        "payload": stored(with_parts({}, _first_parts(db, new))),
        "session_id": key.session,
        "n": key.n,
        "state": TurnState.QUEUED,
        "step": Step.PREPARE,
        "asked_as": new.kind,
        "number": new.thread.number,
        "in_repo": new.thread.repo.id,
        "created_at": at,
    }
    names, values = ", ".join(columns), ", ".join(f":{name}" for name in columns)
    run(db, statement("INSERT INTO turns ({names}) VALUES ({values})", names=names, values=values), **columns)
    intent = "INSERT INTO comments (session_id, turn, updated_at) VALUES (:session_id, :turn, :at)"
    run(db, intent, session_id=key.session, turn=key.n, at=at)
    if new.more is not None:
        spend.put_raise(db, key.session, new.more, at)
    if new.head_sha is not None:
        ci.put_turn_check(db, key, new.head_sha)
    if new.delivery is not None:
        deliveries.settle_in(db, new.delivery, deliveries.DeliveryState.ACTED, None, key.session)
    return key


def _first_parts(db: Database, new: NewTurn) -> list[TurnPart]:
    """Return what is known of it, with what it is likely to cost unless it needs no agent."""
    known: list[TurnPart] = [Places(new.spot, new.discussions), Aim(new.findings, new.unasked)]
    if new.api_token:
        known.append(ByToken(new.api_token))
    if TRAITS[new.kind].is_free:
        return known
    found = turn_figures.estimated(db, new.thread.repo, new.thread.installation, new.kind) or WorkEstimate()
    return [*known, msgspec.structs.replace(found, agreed=new.agreed or "")]


def _new_session(db: Database, thread_id: str, at: float) -> SessionId:
    while True:
        session_id = SessionId("".join(secrets.choice(_ALPHABET) for _ in range(8)))
        sql = """
        INSERT INTO sessions (id, thread_id, created_at) VALUES (:id, :thread_id, :at) ON CONFLICT (id) DO NOTHING
        """
        if run(db, sql, id=session_id, thread_id=thread_id, at=at):
            return session_id
