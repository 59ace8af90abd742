"""What we have said at GitHub: live comments, and the edit quota of each installation.

The quota is stored so that a restart does not begin a new burst."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import msgspec

from bot.models import InstallationId, SessionId, Thread, TurnKey
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, many, one, run, statement

_ONE = "WHERE session_id = :session AND turn = :turn"


@dataclass(frozen=True)
class LiveComment(Record):
    session_id: SessionId
    turn: int
    comment_id: int | None
    """None: intended, not known to exist yet."""
    body_sha256: str | None
    still_sha256: str | None
    """Of what it showed apart from the passing of time."""
    final: bool
    remade: bool
    reacted: bool
    edits: int
    spoilt: int
    """How often somebody else has changed it."""
    restored: int
    """How often it was put right after a bot had changed it."""
    updated_at: float
    moved_to: Thread | None
    """Where it went with its issue."""

    @property
    def key(self) -> TurnKey:
        return TurnKey(self.session_id, self.turn)


async def get(store: Store, key: TurnKey) -> LiveComment | None:
    sql = statement("SELECT * FROM comments {one}", one=_ONE)
    row = await store.read(lambda db: one(db, sql, session=key.session, turn=key.n))
    return LiveComment.of(row) if row else None


async def by_comment(store: Store, comment_id: int) -> LiveComment | None:
    """The live comment with this id, if it is one of ours."""
    row = await store.read(lambda db: one(db, "SELECT * FROM comments WHERE comment_id = :id", id=comment_id))
    return LiveComment.of(row) if row else None


async def unsettled(store: Store, session: SessionId | None = None) -> list[LiveComment]:
    """Comments of turns that are done, in all sessions or one, whose final form GitHub does not show yet."""
    sql = """
    SELECT comments.* FROM comments JOIN turns ON turns.session_id = comments.session_id AND turns.n = comments.turn
    WHERE turns.state = 'done' AND comments.final = 0 AND comments.session_id = COALESCE(:session, comments.session_id)
    ORDER BY turns.finished_at, comments.session_id, comments.turn
    """
    return [LiveComment.of(row) for row in await store.read(lambda db: many(db, sql, session=session))]


async def made(store: Store, key: TurnKey, comment_id: int) -> None:
    """Store that it exists; `shown` says what GitHub shows in it."""
    await _set(store, key, "comment_id = :comment_id", comment_id=comment_id)


async def shown(store: Store, before: LiveComment, body_sha256: str, still_sha256: str, *, final: bool) -> None:
    """GitHub was given this text. A final form stays final: a late writer cannot take it back. Where somebody changed
    the comment since `before` was read, nobody knows whose text stands there now: it is to be written anew."""
    sql = """
    body_sha256 = CASE WHEN spoilt = :spoilt THEN :sha END, still_sha256 = CASE WHEN spoilt = :spoilt THEN :still END,
    final = CASE WHEN final = 1 THEN 1 WHEN spoilt = :spoilt THEN :final ELSE 0 END, edits = edits + 1
    """
    values = {"spoilt": before.spoilt, "sha": body_sha256, "still": still_sha256, "final": final}
    await _set(store, before.key, sql, **values)


async def spoilt(store: Store, key: TurnKey, *, by_bot: bool) -> None:
    """Somebody else changed it: it is to be written anew, final or not."""
    sql = "body_sha256 = NULL, still_sha256 = NULL, final = 0, spoilt = spoilt + 1, restored = restored + :by_bot"
    await _set(store, key, sql, by_bot=by_bot)


def outdate(db: Database, key: TurnKey) -> None:
    """Have it written again, final or not, in the transaction that changes what it offers."""
    settings = "body_sha256 = NULL, still_sha256 = NULL, final = 0, spoilt = spoilt + 1"
    run(
        db,
        statement("UPDATE comments SET {settings} {one}", settings=settings, one=_ONE),
        session=key.session,
        turn=key.n,
    )


async def lost(store: Store, key: TurnKey) -> bool:
    """Somebody deleted it: forget its number. True once, when it may be made again."""
    lost = """
    UPDATE comments SET comment_id = NULL, body_sha256 = NULL, still_sha256 = NULL, remade = 1, updated_at = :at
    {one} AND remade = 0
    """
    at, sql = store.now(), statement(lost, one=_ONE)
    return await store.write(lambda db: run(db, sql, session=key.session, turn=key.n, at=at)) == 1


async def moved(store: Store, key: TurnKey, to: Thread) -> None:
    """Follow it to the thread where its issue went; nobody knows what it shows there."""
    sql = "moved_to = :place, body_sha256 = NULL, still_sha256 = NULL, remade = 0"
    await _set(store, key, sql, place=msgspec.json.encode(to).decode())


async def without_place(store: Store, key: TurnKey) -> None:
    """Its thread is gone: once it cannot be edited any more, it is not made again."""
    await _set(store, key, "remade = 1")


async def reacted(store: Store, key: TurnKey) -> None:
    """The comment that asked has our reaction."""
    await _set(store, key, "reacted = 1")


async def _set(store: Store, key: TurnKey, settings: str, **values: object) -> None:
    sql = statement("UPDATE comments SET {settings}, updated_at = :at {one}", settings=settings, one=_ONE)
    at = store.now()
    await store.write(lambda db: run(db, sql, session=key.session, turn=key.n, at=at, **values))


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
    """The columns; `live.allowance` knows what they mean."""

    tokens: float
    refilled_at: float
    paused_until: float
    pace: str
    pace_since: float
    pace_edits: int
    refused_at: float
    quick: float


async def edit_quota(store: Store, installation: InstallationId) -> StoredEditQuota | None:
    """None for an installation that has not written yet."""
    row = await store.read(lambda db: one(db, _READ_QUOTA, id=installation))
    return StoredEditQuota.of(row) if row else None


async def save_edit_quota(store: Store, installation: InstallationId, quota: StoredEditQuota) -> None:
    await store.write(lambda db: run(db, _WRITE_QUOTA, id=installation, **asdict(quota)))
