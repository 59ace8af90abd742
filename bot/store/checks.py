"""The check run of each turn as we know it: where it stands, intended, made, told, final."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models import SessionId, TurnKey
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, many, one, run

MOST_TRIES = 20
_ONE = "WHERE session_id = :session AND turn = :turn"


@dataclass(frozen=True)
class Check(Record):
    session_id: SessionId
    turn: int
    sha: str
    check_id: int | None
    """None: intended, not known to exist yet."""
    told: str | None
    """Of what GitHub was last given."""
    final: bool

    @property
    def key(self) -> TurnKey:
        return TurnKey(self.session_id, self.turn)


async def get(store: Store, key: TurnKey) -> Check | None:
    sql = f"SELECT * FROM checks {_ONE}"  # noqa: S608 - a constant
    row = await store.read(lambda db: one(db, sql, session=key.session, turn=key.n))
    return Check.of(row) if row else None


async def unsettled(store: Store) -> list[Check]:
    """Of turns that are done while GitHub does not show their conclusion; given up after many tries."""
    sql = """
    SELECT checks.* FROM checks JOIN turns ON turns.session_id = checks.session_id AND turns.n = checks.turn
    WHERE turns.state = 'done' AND checks.final = 0 AND checks.tries < :most ORDER BY turns.finished_at
    """
    return [Check.of(row) for row in await store.read(lambda db: many(db, sql, most=MOST_TRIES))]


async def put(store: Store, key: TurnKey, sha: str) -> None:
    """It is meant to stand at this commit from now on."""
    await store.write(lambda db: put_check(db, key, sha))


async def told(store: Store, key: TurnKey, check_id: int, digest: str, *, final: bool) -> None:
    sql = f"UPDATE checks SET check_id = :check_id, told = :digest, final = :final {_ONE}"  # noqa: S608 - a constant
    values = {"check_id": check_id, "digest": digest, "final": int(final)}
    await store.write(lambda db: run(db, sql, session=key.session, turn=key.n, **values))


async def failed(store: Store, key: TurnKey) -> None:
    """GitHub was not to be told."""
    sql = f"UPDATE checks SET tries = tries + 1 {_ONE}"  # noqa: S608 - a constant
    await store.write(lambda db: run(db, sql, session=key.session, turn=key.n))


def put_check(db: Database, key: TurnKey, sha: str) -> None:
    """`put` as a part of a larger transaction."""
    sql = """
    INSERT INTO checks (session_id, turn, sha) VALUES (:session, :turn, :sha)
    ON CONFLICT (session_id, turn) DO UPDATE SET sha = excluded.sha, check_id = NULL, told = NULL
    WHERE checks.sha <> excluded.sha
    """
    run(db, sql, session=key.session, turn=key.n, sha=sha)
