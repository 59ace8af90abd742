"""Stores what we have posted: live comments, and the edit quota of each installation."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import msgspec

from bot.models import InstallationId, SessionId, Thread, TurnKey
from bot.store.base import Store
from bot.store.records import OfTurn, Record
from bot.store.rows import Database, run, statement

_ONE = "WHERE session_id = :session AND turn = :turn"
_OUTDATED = "body_sha256 = NULL, still_sha256 = NULL, final = 0, spoilt = spoilt + 1"


@dataclass(frozen=True)
class LiveComment(OfTurn):
    comment_id: int | None
    """None: planned, not known to exist yet."""
    body_sha256: str | None
    still_sha256: str | None
    """Digest of its body without the parts that only show time passing."""
    final: bool
    remade: bool
    reacted: bool
    edits: int
    spoilt: int
    """How often someone else has edited it."""
    restored: int
    """How often we restored it after a bot's edit."""
    updated_at: float
    moved_to: Thread | None
    """The thread to which its issue was transferred."""


async def get(store: Store, key: TurnKey) -> LiveComment | None:
    sql = statement("SELECT * FROM comments {one}", one=_ONE)
    return await LiveComment.one(store, sql, session=key.session, turn=key.n)


async def by_comment(store: Store, comment_id: int) -> LiveComment | None:
    return await LiveComment.one(store, "SELECT * FROM comments WHERE comment_id = :id", id=comment_id)


async def unsettled(store: Store, session: SessionId | None = None) -> list[LiveComment]:
    """Return comments of ended turns, in all sessions or one, whose final form GitHub does not show yet."""
    sql = """
    SELECT comments.* FROM comments JOIN turns ON turns.session_id = comments.session_id AND turns.n = comments.turn
    WHERE turns.state = 'done' AND comments.final = 0 AND comments.session_id = COALESCE(:session, comments.session_id)
    ORDER BY turns.finished_at, comments.session_id, comments.turn
    """
    return await LiveComment.many(store, sql, session=session)


async def made(store: Store, key: TurnKey, comment_id: int) -> None:
    """Note that it exists; `shown` notes its text."""
    await _set(store, key, "comment_id = :comment_id", comment_id=comment_id)


async def shown(store: Store, before: LiveComment, body_sha256: str, still_sha256: str, *, final: bool) -> None:
    """Note the text that we sent. A final form stays final, whatever a late writer says. If someone has edited the
    comment since `before` was read, its text is unknown, so we write it again."""
    sql = """
    body_sha256 = CASE WHEN spoilt = :spoilt THEN :sha END, still_sha256 = CASE WHEN spoilt = :spoilt THEN :still END,
    final = CASE WHEN final = 1 THEN 1 WHEN spoilt = :spoilt THEN :final ELSE 0 END, edits = edits + 1
    """
    values = {"spoilt": before.spoilt, "sha": body_sha256, "still": still_sha256, "final": final}
    await _set(store, before.key, sql, **values)


async def spoilt(store: Store, key: TurnKey, *, by_bot: bool) -> None:
    """Note that someone else edited it, so that we write it again, final or not."""
    await _set(store, key, f"{_OUTDATED}, restored = restored + :by_bot", by_bot=by_bot)


def outdate(db: Database, key: TurnKey) -> None:
    """Have it written again, final or not, in the transaction that changes what it offers."""
    sql = statement("UPDATE comments SET {outdated} {one}", outdated=_OUTDATED, one=_ONE)
    run(db, sql, session=key.session, turn=key.n)


async def lost(store: Store, key: TurnKey) -> bool:
    """Forget the number of a deleted comment; True once, when it may be created again."""
    lost = """
    UPDATE comments SET comment_id = NULL, body_sha256 = NULL, still_sha256 = NULL, remade = 1, updated_at = :at
    {one} AND remade = 0
    """
    return await store.run(statement(lost, one=_ONE), session=key.session, turn=key.n, at=store.now()) == 1


async def moved(store: Store, key: TurnKey, to: Thread) -> None:
    """Follow it to the thread to which its issue was transferred; its text there is unknown."""
    sql = "moved_to = :place, body_sha256 = NULL, still_sha256 = NULL, remade = 0"
    await _set(store, key, sql, place=msgspec.json.encode(to).decode())


async def without_place(store: Store, key: TurnKey) -> None:
    """Note that its thread is gone, so that it is not created again."""
    await _set(store, key, "remade = 1")


async def reacted(store: Store, key: TurnKey) -> None:
    """Note that the comment that asked has our reaction."""
    await _set(store, key, "reacted = 1")


async def _set(store: Store, key: TurnKey, settings: str, **values: object) -> None:
    sql = statement("UPDATE comments SET {settings}, updated_at = :at {one}", settings=settings, one=_ONE)
    await store.run(sql, session=key.session, turn=key.n, at=store.now(), **values)


_READ_QUOTA = "SELECT * FROM writer_buckets WHERE installation_id = :id"
_WRITE_QUOTA = """
INSERT INTO writer_buckets (installation_id, tokens, refilled_at, paused_until, pace, pace_since, pace_edits,
                            refused_at, quick)
VALUES (:id, :tokens, :refilled_at, :paused_until, :pace, :pace_since, :pace_edits, :refused_at, :quick)
ON CONFLICT (installation_id) DO UPDATE
SET tokens = excluded.tokens, refilled_at = excluded.refilled_at, paused_until = excluded.paused_until,
    pace = excluded.pace, pace_since = excluded.pace_since, pace_edits = excluded.pace_edits,
    refused_at = excluded.refused_at, quick = excluded.quick
"""


@dataclass(frozen=True)
class StoredEditQuota(Record):
    """The columns; `live.edit_quota` knows their meaning."""

    tokens: float
    refilled_at: float
    paused_until: float
    pace: str
    pace_since: float
    pace_edits: int
    refused_at: float
    quick: float


async def edit_quota(store: Store, installation: InstallationId) -> StoredEditQuota | None:
    return await StoredEditQuota.one(store, _READ_QUOTA, id=installation)


async def save_edit_quota(store: Store, installation: InstallationId, quota: StoredEditQuota) -> None:
    await store.run(_WRITE_QUOTA, id=installation, **asdict(quota))
