"""The check runs of turns as we know them: at which commit, made or only meant, and what GitHub was last told."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models import InstallationId, SessionId, TurnKey, TurnState
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import Database, many, run

MOST_TRIES = 20
MOVED = "moved"
_ONE = "WHERE session_id = :session AND turn = :turn AND sha = :sha"


@dataclass(frozen=True)
class TurnCheck(Record):
    session_id: SessionId
    turn: int
    sha: str
    wanted: str
    """What it has to tell: a state of the turn, or that the turn has gone on to another commit."""
    installation_id: InstallationId

    @property
    def key(self) -> TurnKey:
        return TurnKey(self.session_id, self.turn)


async def untold_checks(store: Store) -> list[TurnCheck]:
    """Those that do not tell yet how their turn stands; given up after many refusals."""
    sql = """
    SELECT * FROM (
        SELECT checks.session_id, checks.turn, checks.sha, checks.told, repos.installation_id,
               CASE WHEN checks.moved = 1 THEN 'moved' ELSE turns.state END AS wanted
        FROM checks JOIN turns ON turns.session_id = checks.session_id AND turns.n = checks.turn
        JOIN sessions ON sessions.id = checks.session_id JOIN threads ON threads.id = sessions.thread_id
        JOIN repos ON repos.id = threads.repo_id
        WHERE checks.final = 0 AND checks.tries < :most
    ) AS found WHERE told IS NULL OR told <> wanted
    """
    return [TurnCheck.of(row) for row in await store.read(lambda db: many(db, sql, most=MOST_TRIES))]


async def show_turn(store: Store, key: TurnKey, sha: str) -> None:
    """The turn is to be shown at this commit from now on, and no longer at another one."""
    await store.write(lambda db: put_turn_check(db, key, sha))


async def check_told(store: Store, check: TurnCheck) -> None:
    """GitHub shows it. What is done, or moved on, is not told a second time."""
    sql = f"UPDATE checks SET told = :wanted, tries = 0, final = :final {_ONE}"  # noqa: S608 - a constant
    final = int(check.wanted in (TurnState.DONE, MOVED))
    values = {"session": check.session_id, "turn": check.turn, "sha": check.sha, "wanted": check.wanted}
    await store.write(lambda db: run(db, sql, final=final, **values))


async def check_refused(store: Store, check: TurnCheck) -> None:
    sql = f"UPDATE checks SET tries = tries + 1 {_ONE}"  # noqa: S608 - a constant
    values = {"session": check.session_id, "turn": check.turn, "sha": check.sha}
    await store.write(lambda db: run(db, sql, **values))


def put_turn_check(db: Database, key: TurnKey, sha: str) -> None:
    """`put` as a part of a larger transaction."""
    values = {"session": key.session, "turn": key.n, "sha": sha}
    leave = "UPDATE checks SET moved = 1 WHERE session_id = :session AND turn = :turn AND sha <> :sha"
    come = "INSERT INTO checks (session_id, turn, sha) VALUES (:session, :turn, :sha) ON CONFLICT DO NOTHING"
    run(db, leave, **values)
    run(db, come, **values)
