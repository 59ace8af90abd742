"""Conversations: how a request becomes a session's next turn, in one transaction, and what lists show of them."""

from __future__ import annotations

import secrets
import string
from typing import Any

import msgspec

from bot.commands.options import NO_OPTIONS
from bot.errors import StoreError
from bot.models import SessionId, Thread, TurnKey
from bot.store import budgets, checks, ci, deliveries, threads
from bot.store.base import Store
from bot.store.records import Listed, NewTurn, Session, Turn
from bot.store.rows import Database, many, one, run
from bot.store.turns import (
    Found,
    advance,
    begin_push,
    cancel_queued,
    decide,
    decide_stopped,
    finish,
    queued,
    request_stop,
    running,
    set_session,
    start,
    turn,
    turns_of,
    update_turn,
)

__all__ = [
    "Found",
    "Listed",
    "NewTurn",
    "Session",
    "Turn",
    "advance",
    "begin_push",
    "begin_turn",
    "by_source",
    "cancel_queued",
    "decide",
    "decide_stopped",
    "finish",
    "latest",
    "listing",
    "put_turn",
    "queued",
    "request_stop",
    "running",
    "session",
    "start",
    "turn",
    "turns_of",
    "update_session",
    "update_turn",
]

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

_INSERT_TURN = """
INSERT INTO turns (session_id, n, state, step, kind, asked_as, prompt, requester, requester_id, number, source,
                   source_comment, asked_at, thread_sha256, model, budget_usd, timeout_seconds, base, max_turns,
                   approval, spot, new_branch, discussions, created_at, in_repo, options)
VALUES (:session_id, :n, 'queued', 'prepare', :kind, :kind, :prompt, :requester, :requester_id, :number, :source,
        :source_comment, :asked_at, :thread_sha256,
        :model, :budget_usd, :timeout_seconds, :base, :max_turns, :approval, :spot, :new_branch,
        :discussions, :created_at, :in_repo, :options)
"""

_TURN_COLUMNS = (
    "kind",
    "prompt",
    "requester",
    "requester_id",
    "source",
    "source_comment",
    "asked_at",
    "thread_sha256",
    "model",
    "budget_usd",
    "timeout_seconds",
    "base",
    "max_turns",
    "approval",
)

_LISTING = """
SELECT sessions.id, repos.owner || '/' || repos.name AS repo, threads.number, last.state, last.outcome, last.n AS turns,
       last.requester, sessions.pull_url, sessions.created_at, last.finished_at,
       COALESCE((SELECT SUM(spend.cost_usd) FROM spend WHERE spend.session_id = sessions.id), 0.0) AS cost_usd
FROM sessions JOIN threads ON threads.id = sessions.thread_id JOIN repos ON repos.id = threads.repo_id
JOIN turns AS last ON last.session_id = sessions.id
     AND last.n = (SELECT MAX(n) FROM turns WHERE turns.session_id = sessions.id)
ORDER BY sessions.created_at DESC, sessions.id LIMIT :limit
"""


async def begin_turn(store: Store, new: NewTurn) -> TurnKey | None:
    """Queue it as the next turn of its thread's session (a new one if there is none), with the intent of its comment.

    None when the same source has asked before (`by_source` tells its turn), or what it asked was taken back."""
    at = store.now()
    return await store.write(lambda db: put_turn(db, new, at))


async def session(store: Store, session_id: SessionId) -> Session:
    row = await store.read(lambda db: one(db, _SELECT + " WHERE sessions.id = :id", id=session_id))
    if row is None:
        raise StoreError(f"There is no session {session_id}.")
    return Session.of(row)


async def by_source(store: Store, source: str) -> TurnKey | None:
    """The turn that a comment (or whatever) has started."""
    row = await store.read(lambda db: one(db, "SELECT session_id, n FROM turns WHERE source = :source", source=source))
    return TurnKey(row["session_id"], row["n"]) if row else None


async def latest(store: Store, thread: Thread) -> Turn | None:
    """The last turn on the thread, whatever its state: whom a message steers, what `stop` and `retry` mean."""

    def work(db: Database) -> TurnKey | None:
        row = one(db, _LATEST, thread_id=threads.home_of(db, thread.repo.id, thread.number))
        return TurnKey(row["session_id"], row["n"]) if row else None

    key = await store.read(work)
    return await turn(store, key) if key else None


async def update_session(store: Store, session_id: SessionId, **columns: Any) -> None:
    await store.write(lambda db: set_session(db, session_id, columns))


async def listing(store: Store, limit: int = 1000) -> list[Listed]:
    """Newest first."""
    return [Listed.of(row) for row in await store.read(lambda db: many(db, _LISTING, limit=limit))]


def put_turn(db: Database, new: NewTurn, at: float) -> TurnKey | None:
    """`begin_turn` as a part of a larger transaction."""
    known = one(db, "SELECT n FROM turns WHERE source = :source", source=new.source)
    if known or ci.was_taken_back(db, new.source):
        return None
    thread_id = threads.put_thread(db, new.thread, at)
    last = one(db, _LATEST, thread_id=thread_id)
    key = TurnKey(last["session_id"], last["n"] + 1) if last else TurnKey(_new_session(db, thread_id, at), 1)
    values = {name: getattr(new, name) for name in _TURN_COLUMNS}
    values["new_branch"] = int(new.new_branch)
    values["discussions"] = msgspec.json.encode(new.discussions).decode() if new.discussions else None
    values["in_repo"] = new.thread.repo.id
    values["options"] = msgspec.json.encode(new.options).decode() if new.options != NO_OPTIONS else None
    values["spot"] = msgspec.json.encode(new.spot).decode() if new.spot else None
    run(db, _INSERT_TURN, session_id=key.session, n=key.n, number=new.thread.number, created_at=at, **values)
    intent = "INSERT INTO comments (session_id, turn, updated_at) VALUES (:session_id, :turn, :at)"
    run(db, intent, session_id=key.session, turn=key.n, at=at)
    if new.more is not None:
        budgets.put_raise(db, key.session, new.more, at)
    if new.head_sha is not None:
        checks.put_check(db, key, new.head_sha)
    if new.delivery is not None:
        deliveries.settled(db, new.delivery, deliveries.DeliveryState.ACTED, None, key.session)
    return key


def _new_session(db: Database, thread_id: str, at: float) -> SessionId:
    while True:
        session_id = SessionId("".join(secrets.choice(_ALPHABET) for _ in range(8)))
        sql = """
        INSERT INTO sessions (id, thread_id, created_at) VALUES (:id, :thread_id, :at) ON CONFLICT (id) DO NOTHING
        """
        if run(db, sql, id=session_id, thread_id=thread_id, at=at):
            return session_id
