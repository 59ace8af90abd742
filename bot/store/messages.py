"""Words for the agent: kept in order until it has them, or the next turn takes them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from bot.kinds import TRAITS
from bot.models import SessionId, Spot, TurnKey
from bot.store import repos, sessions, transcript
from bot.store.base import Store
from bot.store.records import NewTurn, Record
from bot.store.rows import Database, many, one, run, statement

KIND = "message"
"""Of the event row that tells of a delivery."""


class MessageState(StrEnum):
    WAITING = "waiting"
    DELIVERED = "delivered"
    MOVED = "moved"
    """It came too late and is a turn of its own."""
    DROPPED = "dropped"
    """The turn was stopped before the agent had it, or its author may not write here any more."""


@dataclass(frozen=True)
class StoredMessage(Record):
    source: str
    session_id: SessionId
    turn: int
    place: int
    state: MessageState
    author: str
    text: str
    request: NewTurn
    at: float

    @property
    def key(self) -> TurnKey:
        return TurnKey(self.session_id, self.turn)


# The one that runs comes before those that wait. Past `work` the agent hears nothing more.
_OPEN_TURN = statement(
    """
SELECT turns.session_id, turns.n FROM turns JOIN sessions ON sessions.id = turns.session_id
WHERE sessions.thread_id = :thread_id AND turns.state <> 'done' AND turns.kind IN ({hearing})
  AND turns.step IN ('prepare', 'furnish', 'work') AND turns.outcome IS NULL AND turns.stop_requested IS NULL
ORDER BY CASE turns.state WHEN 'running' THEN 0 ELSE 1 END, turns.n LIMIT 1
""",
    hearing=", ".join(f"'{name}'" for name, traits in TRAITS.items() if traits.hears),
)
_INSERT = """
INSERT INTO messages (source, session_id, turn, place, state, author, text, request, at)
VALUES (:source, :session, :n, (SELECT COALESCE(MAX(place), 0) + 1 FROM messages WHERE session_id = :session),
        'waiting', :author, :text, :request, :at)
"""
_SETTLE = "UPDATE messages SET state = :state WHERE source = :source AND state = 'waiting'"


async def keep_for_agent(store: Store, new: NewTurn) -> TurnKey | None:
    """Store words for the turn of the thread that still listens, once for each text. None: nobody listens."""
    at = store.now()
    return await store.write(lambda db: _keep(db, replace(new, delivery=None), at))


async def waiting(store: Store, key: TurnKey) -> list[StoredMessage]:
    """Messages for the turn that still wait, in order."""
    sql = """
    SELECT * FROM messages WHERE session_id = :session AND turn = :n AND state = 'waiting' ORDER BY place
    """
    return [StoredMessage.of(row) for row in await store.read(lambda db: many(db, sql, session=key.session, n=key.n))]


async def places_heard(store: Store, key: TurnKey) -> list[Spot]:
    """The places in the diff at which words were written that the agent has, in their order."""
    sql = """
    SELECT * FROM messages WHERE session_id = :session AND turn = :n AND state = 'delivered' ORDER BY place
    """
    rows = await store.read(lambda db: many(db, sql, session=key.session, n=key.n))
    return [spot for row in rows if (spot := StoredMessage.of(row).request.spot) is not None]


async def delivered(store: Store, message: StoredMessage) -> None:
    """The agent has it; the turn's events say so."""
    at = store.now()
    line = json.dumps({"type": KIND, "author": message.author, "text": message.text})

    def work(db: Database) -> None:
        if run(db, _SETTLE, source=message.source, state=MessageState.DELIVERED):
            transcript.note_event(db, message.key, KIND, line, at)

    await store.write(work)


async def refuse(store: Store, message: StoredMessage) -> None:
    """Its author may not say anything here any more; the turn's events say so, and not the words."""
    at = store.now()
    line = json.dumps({"type": KIND, "author": message.author, "withheld": True})

    def work(db: Database) -> None:
        if run(db, _SETTLE, source=message.source, state=MessageState.DROPPED):
            transcript.note_event(db, message.key, KIND, line, at)

    await store.write(work)


async def drop(store: Store, message: StoredMessage) -> None:
    await store.write(lambda db: run(db, _SETTLE, source=message.source, state=MessageState.DROPPED))


async def move(store: Store, message: StoredMessage) -> TurnKey | None:
    """Make it the next turn; None if that was done before."""
    at = store.now()

    def work(db: Database) -> TurnKey | None:
        if not run(db, _SETTLE, source=message.source, state=MessageState.MOVED):
            return None
        return sessions.put_turn(db, message.request, at)

    return await store.write(work)


def _keep(db: Database, new: NewTurn, at: float) -> TurnKey | None:
    known = one(db, "SELECT session_id, turn AS n FROM messages WHERE source = :source", source=new.source)
    if known is None:
        if one(db, "SELECT n FROM turns WHERE source = :source", source=new.source):
            return None
        home = repos.home_of(db, new.thread.repo.id, new.thread.number)
        known = one(db, _OPEN_TURN, thread_id=home)
        if known is None:
            return None
        request = msgspec.json.encode(new).decode()
        words = {"author": new.requester, "text": new.prompt, "request": request}
        run(db, _INSERT, source=new.source, session=known["session_id"], n=known["n"], at=at, **words)
    return TurnKey(known["session_id"], known["n"])
