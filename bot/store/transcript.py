"""A turn's events: the agent's lines as they came, and lines of ours between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.models import SessionId, TurnKey
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, one, run

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


def note_event(db: Database, key: TurnKey, kind: str, line: str, at: float) -> None:
    """Add a line of ours, marked by its kind, within a larger transaction."""
    _insert(db, key, [(kind, line)], at)


def _insert(db: Database, key: TurnKey, lines: Sequence[tuple[str, str]], at: float) -> None:
    if not lines:
        return
    row = one(db, "SELECT COALESCE(MAX(seq), 0) AS seq FROM events WHERE session_id = :id", id=key.session)
    assert row is not None
    sql = """
    INSERT INTO events (session_id, seq, turn, kind, line, at) VALUES (:session, :seq, :turn, :kind, :line, :at)
    """
    for seq, (kind, line) in enumerate(lines, start=row["seq"] + 1):
        run(db, sql, session=key.session, turn=key.n, at=at, seq=seq, kind=kind, line=line)
