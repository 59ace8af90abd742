"""Stores what is said in a turn: events of the agent and of ours, and people's words for the agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from bot.kinds import TRAITS
from bot.models import SessionId, Spot, TurnKey
from bot.store import audit, repos, sessions
from bot.store.audit import AuditEntry
from bot.store.base import Store
from bot.store.records import NewTurn, OfTurn, Record
from bot.store.rows import Database, insert, one, run, statement

MESSAGE_KIND = "message"
"""The kind of the event row that says what the agent got."""
NOTE_KIND = "note"
"""The kind of the event row that says why the agent was started again."""
ANSWER_KIND = "answer"
"""The kind of the event row that holds a question and its answer beside the work."""


class MessageState(StrEnum):
    WAITING = "waiting"
    DELIVERED = "delivered"
    MOVED = "moved"
    """It came too late and became a turn."""
    DROPPED = "dropped"
    """The turn was stopped before the agent got it, or its author lost the right to write here."""
    ANSWERED = "answered"
    """It was a question, and was answered beside the work."""


@dataclass(frozen=True)
class StoredMessage(OfTurn):
    source: str
    place: int
    state: MessageState
    author: str
    text: str
    request: NewTurn
    beside: bool
    at: float

    @property
    def question(self) -> str:
        """Name a question for the agent, the gateway and the reply."""
        return f"{self.session_id}-{self.place}"


# A running turn comes before waiting ones. After `work` the agent hears nothing more.
_OPEN_TURN = statement(
    """
SELECT turns.session_id, turns.n FROM turns JOIN sessions ON sessions.id = turns.session_id
WHERE sessions.thread_id = :thread_id AND turns.state <> 'done' AND turns.kind IN ({hearing})
  AND turns.step IN ('prepare', 'furnish', 'work') AND turns.outcome IS NULL AND turns.stop_requested IS NULL
ORDER BY CASE turns.state WHEN 'running' THEN 0 ELSE 1 END, turns.n LIMIT 1
""",
    hearing=", ".join(f"'{name}'" for name, traits in TRAITS.items() if traits.hears),
)
_AT_WORK = """
SELECT turns.session_id, turns.n FROM turns JOIN sessions ON sessions.id = turns.session_id
WHERE sessions.thread_id = :thread_id AND turns.state = 'running' AND turns.step = 'work'
  AND turns.outcome IS NULL AND turns.stop_requested IS NULL
ORDER BY turns.n LIMIT 1
"""
_INSERT = """
INSERT INTO messages (source, session_id, turn, place, state, author, text, request, beside, at)
VALUES (:source, :session, :n, (SELECT COALESCE(MAX(place), 0) + 1 FROM messages WHERE session_id = :session),
        'waiting', :author, :text, :request, :beside, :at)
"""
_SETTLE = "UPDATE messages SET state = :state WHERE source = :source AND state = 'waiting'"


async def keep_for_agent(store: Store, new: NewTurn, *, beside: bool = False) -> TurnKey | None:
    """Store words, once, for the thread's turn that still listens; None: no turn listens. With `beside`, they are a
    question, which any agent at work can answer."""
    new, at = replace(new, delivery=None), store.now()

    def work(db: Database) -> TurnKey | None:
        known = one(db, "SELECT session_id, turn AS n FROM messages WHERE source = :source", source=new.source)
        if known is None:
            if one(db, "SELECT n FROM turns WHERE source = :source", source=new.source):
                return None
            known = one(
                db,
                _AT_WORK if beside else _OPEN_TURN,
                thread_id=repos.home_of(db, new.thread.repo.id, new.thread.number),
            )
            if known is None:
                return None
            words = {"author": new.requester, "text": new.prompt, "request": msgspec.json.encode(new).decode()}
            about = {"session": known["session_id"], "n": known["n"], "beside": int(beside)}
            run(db, _INSERT, source=new.source, at=at, **about, **words)
        return TurnKey(known["session_id"], known["n"])

    return await store.write(work)


async def waiting(store: Store, key: TurnKey) -> list[StoredMessage]:
    return await _in_state(store, key, MessageState.WAITING)


async def questions(store: Store, key: TurnKey) -> list[StoredMessage]:
    """Return the questions for beside the work that have no answer yet."""
    return [message for message in await waiting(store, key) if message.beside]


async def places_heard(store: Store, key: TurnKey) -> list[Spot]:
    """Return where in the diff the messages were written that the agent got, in order."""
    heard = await _in_state(store, key, MessageState.DELIVERED)
    return [message.request.spot for message in heard if message.request.spot is not None]


async def _in_state(store: Store, key: TurnKey, state: MessageState) -> list[StoredMessage]:
    sql = "SELECT * FROM messages WHERE session_id = :session AND turn = :n AND state = :state ORDER BY place"
    return await StoredMessage.many(store, sql, session=key.session, n=key.n, state=state)


async def delivered(store: Store, message: StoredMessage) -> None:
    """Note, also in the turn's events, that the agent has it."""
    await _settle(store, message, MessageState.DELIVERED, text=message.text)


async def answered(store: Store, question: StoredMessage, answer: str) -> None:
    """Note, also in the turn's events and in the audit trail, that it was answered beside the work."""
    at, key = store.now(), question.key
    line = json.dumps({"type": ANSWER_KIND, "asked_by": question.author, "question": question.text, "answer": answer})
    entry = AuditEntry(
        f"answer:{question.source}", at, question.author, "question answered", key.session, f"beside turn {key.n}"
    )

    def work(db: Database) -> None:
        if run(db, _SETTLE, source=question.source, state=MessageState.ANSWERED):
            note_event(db, key, ANSWER_KIND, line, at)
            audit.note(db, entry)

    await store.write(work)


async def refuse(store: Store, message: StoredMessage) -> None:
    """Drop it, because its author may no longer write here; the turn's events say so without its words."""
    await _settle(store, message, MessageState.DROPPED, withheld=True)


async def _settle(store: Store, message: StoredMessage, state: MessageState, **note: object) -> None:
    at = store.now()
    line = json.dumps({"type": MESSAGE_KIND, "author": message.author, **note})

    def work(db: Database) -> None:
        if run(db, _SETTLE, source=message.source, state=state):
            note_event(db, message.key, MESSAGE_KIND, line, at)

    await store.write(work)


async def drop(store: Store, message: StoredMessage) -> None:
    await store.run(_SETTLE, source=message.source, state=MessageState.DROPPED)


async def move(store: Store, message: StoredMessage) -> TurnKey | None:
    at = store.now()

    def work(db: Database) -> TurnKey | None:
        if not run(db, _SETTLE, source=message.source, state=MessageState.MOVED):
            return None
        return sessions.put_turn(db, message.request, at)

    return await store.write(work)


STREAM = "stream"
"""The kind of the agent's own lines."""


@dataclass(frozen=True)
class StoredEvent(Record):
    session_id: SessionId
    seq: int
    turn: int
    kind: str
    line: str
    at: float


async def append_events(
    store: Store,
    key: TurnKey,
    lines: Sequence[tuple[str, str]],
    *,
    expected_offset: int,
    new_offset: int,
    skipped: int = 0,
) -> bool:
    """Store (kind, line) pairs and move the stream's offset, together; a writer that is late adds nothing."""
    at = store.now()

    def work(db: Database) -> bool:
        moved = """
        UPDATE turns SET stream_offset = :new, stream_skipped = stream_skipped + :skipped, pulse_at = :at
        WHERE session_id = :session AND n = :n AND stream_offset = :expected
        """
        offsets = {"new": new_offset, "expected": expected_offset, "skipped": skipped}
        if not run(db, moved, session=key.session, n=key.n, at=at, **offsets):
            return False
        _insert(db, key, lines, at)
        return True

    return await store.write(work)


async def count_events(store: Store, key: TurnKey) -> int:
    sql = "SELECT COUNT(*) AS lines FROM events WHERE session_id = :session AND turn = :turn"
    row = await store.one(sql, session=key.session, turn=key.n)
    return int(row["lines"]) if row else 0


async def events_of_turn(store: Store, key: TurnKey, after_seq: int = 0, limit: int = 1000) -> list[StoredEvent]:
    sql = """
    SELECT * FROM events WHERE session_id = :session AND turn = :turn AND seq > :after ORDER BY seq LIMIT :limit
    """
    return await StoredEvent.many(store, sql, session=key.session, turn=key.n, after=after_seq, limit=limit)


async def events_of_session(
    store: Store, session: SessionId, after_seq: int = 0, limit: int = 1000
) -> list[StoredEvent]:
    """Read the events of all turns, for `sessions logs` and the live page."""
    sql = "SELECT * FROM events WHERE session_id = :session AND seq > :after ORDER BY seq LIMIT :limit"
    return await StoredEvent.many(store, sql, session=session, after=after_seq, limit=limit)


async def events_at(store: Store, session: SessionId, seqs: Sequence[int]) -> list[StoredEvent]:
    """Read single events again, in order."""
    numbers = {f"seq{place}": seq for place, seq in enumerate(seqs)}
    named = ", ".join(f":{name}" for name in numbers) or "NULL"
    sql = statement("SELECT * FROM events WHERE session_id = :session AND seq IN ({named}) ORDER BY seq", named=named)
    return await StoredEvent.many(store, sql, session=session, **numbers)


def note_event(db: Database, key: TurnKey, kind: str, line: str, at: float) -> None:
    """Add a line of ours, marked by its kind, within a larger transaction."""
    _insert(db, key, [(kind, line)], at)


def _insert(db: Database, key: TurnKey, lines: Sequence[tuple[str, str]], at: float) -> None:
    if not lines:
        return
    row = one(db, "SELECT COALESCE(MAX(seq), 0) AS seq FROM events WHERE session_id = :id", id=key.session)
    assert row is not None
    same = {"session_id": key.session, "turn": key.n, "at": at}
    numbered = enumerate(lines, start=row["seq"] + 1)
    insert(db, "events", [{**same, "seq": seq, "kind": kind, "line": line} for seq, (kind, line) in numbered])
