"""The checks of pull requests that are looked after: one row for each, with the head that is meant, and the attempts.

Attempts are counted in rounds: a person's wish, or a commit that is not a fix of ours, begins the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bot.commands.options import NO_OPTIONS, Options
from bot.models import Outcome, RepoId, Thread
from bot.store import threads
from bot.store.base import Store
from bot.store.records import OfRepo, Record
from bot.store.rows import Database, many, one, run

QUIET_SECONDS = 15.0
"""After a check has ended others of the same commit may just begin."""


@dataclass(frozen=True)
class Asked:
    """Who wants the checks mended, and in which words."""

    login: str
    id: int
    source: str
    words: str
    at: float
    comment_id: int | None = None
    thread_sha256: str = ""
    options: Options = NO_OPTIONS


@dataclass(frozen=True)
class Reruns:
    """What was run again at a commit, to tell a flake from a failure."""

    runs: dict[str, int]
    """The attempt that failed, by the number of the run of Actions."""
    names: tuple[str, ...]
    """The checks that had failed."""
    note: str = ""
    """Why nothing was run again."""


@dataclass(frozen=True)
class Watch(OfRepo):
    number: int
    round: int
    sha: str
    event_at: float
    asked: dict[str, Any] | None
    reruns: dict[str, Any] | None

    @property
    def thread(self) -> Thread:
        return Thread(self.repo, self.installation_id, self.number, is_pull=True)

    @property
    def source(self) -> str:
        """Of the attempt at this commit: one in each round."""
        return f"ci:{self.repo_id}:{self.number}:{self.round}:{self.sha}"

    @property
    def wish(self) -> Asked | None:
        return None if self.asked is None else msgspec.convert(self.asked, Asked)

    @property
    def rerun(self) -> Reruns | None:
        return None if self.reruns is None else msgspec.convert(self.reruns, Reruns)


@dataclass(frozen=True)
class Attempt(Record):
    """With what became of its turn; `outcome` None: it is under way."""

    source: str
    sha: str
    failing: tuple[str, ...]
    notes: tuple[str, ...]
    outcome: Outcome | None
    commit_sha: str | None


@dataclass(frozen=True)
class Ours(Record):
    """The turn that pushed a commit."""

    kind: str
    requester: str
    requester_id: int
    pull_number: int
    newest: str
    """The last commit that its session has pushed to that pull request."""


_DUE = """
SELECT ci_watches.*, repos.installation_id, repos.owner, repos.name, repos.private, repos.default_branch
FROM ci_watches JOIN repos ON repos.id = ci_watches.repo_id
WHERE ci_watches.due_at <= :now AND ci_watches.off_by IS NULL AND repos.removed_at IS NULL
ORDER BY ci_watches.due_at LIMIT 50
"""
_OURS = """
SELECT turns.kind, turns.requester, turns.requester_id,
    COALESCE(turns.pull_number, sessions.pull_number) AS pull_number, (
    SELECT later.commit_sha FROM turns AS later WHERE later.session_id = turns.session_id
    AND COALESCE(later.pull_number, 0) = COALESCE(turns.pull_number, 0)
    AND later.commit_sha IS NOT NULL AND later.rescue_ref IS NULL ORDER BY later.n DESC LIMIT 1) AS newest
FROM turns JOIN sessions ON sessions.id = turns.session_id JOIN threads ON threads.id = sessions.thread_id
WHERE turns.commit_sha = :sha AND turns.rescue_ref IS NULL AND threads.repo_id = :repo_id
  AND COALESCE(turns.pull_number, sessions.pull_number) IS NOT NULL ORDER BY turns.created_at DESC LIMIT 1
"""
_ATTEMPTS = """
SELECT ci_attempts.source, ci_attempts.sha, ci_attempts.failing, ci_attempts.notes, turns.outcome, turns.commit_sha
FROM ci_attempts JOIN turns ON turns.source = ci_attempts.source
WHERE ci_attempts.repo_id = :repo_id AND ci_attempts.number = :number AND ci_attempts.round = :round
  AND ci_attempts.moved = 0 ORDER BY ci_attempts.at, ci_attempts.source
"""
_PUT = """
INSERT INTO ci_watches (repo_id, number, round, sha, event_at, due_at, asked)
VALUES (:repo_id, :number, 1, :sha, :at, :due_at, :asked)
ON CONFLICT (repo_id, number) DO UPDATE SET sha = excluded.sha, event_at = excluded.event_at, due_at = excluded.due_at
"""
_REFUSED = """
SELECT 1 AS found FROM ci_watches WHERE repo_id = :repo_id AND number = :number AND off_by IS NULL AND EXISTS (
    SELECT 1 FROM ci_attempts WHERE ci_attempts.repo_id = ci_watches.repo_id AND ci_attempts.number = ci_watches.number
    AND ci_attempts.round = ci_watches.round AND ci_attempts.sha = ci_watches.sha
    AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.source = ci_attempts.source))
"""
_TAKEN_BACK = """
SELECT 1 AS found FROM ci_attempts JOIN ci_watches
ON ci_watches.repo_id = ci_attempts.repo_id AND ci_watches.number = ci_attempts.number
WHERE ci_attempts.source = :source AND (ci_watches.off_by IS NOT NULL OR ci_watches.round <> ci_attempts.round)
"""
_SAME = "WHERE repo_id = :repo_id AND number = :number AND round = :round AND sha = :sha"


async def ours(store: Store, repo_id: RepoId, sha: str) -> Ours | None:
    """Who pushed it, if one of our turns did and its pull request is known."""
    row = await store.read(lambda db: one(db, _OURS, sha=sha, repo_id=repo_id))
    return Ours.of(row) if row else None


async def heard(store: Store, repo_id: RepoId, number: int, sha: str, *, fresh: bool, only_asked: bool = False) -> bool:
    """A check of a commit of ours has ended, or it was just pushed. False where nobody wants it looked after.

    `fresh`: it is no attempt of ours to mend checks, so that these are counted anew."""
    at = store.now()

    def work(db: Database) -> bool:
        known = one(db, "SELECT * FROM ci_watches WHERE repo_id = :r AND number = :n", r=repo_id, n=number)
        if known and known["off_by"] is not None:
            return False
        if only_asked and (fresh or not known or known["asked"] is None):
            return False
        run(db, _PUT, repo_id=repo_id, number=number, sha=sha, at=at, due_at=at + QUIET_SECONDS, asked=None)
        if known and known["sha"] != sha:
            _begin_anew(db, repo_id, number, fresh=fresh, keep_wish=not fresh)
        return True

    return await store.write(work)


async def heard_again(store: Store, repo_id: RepoId, sha: str) -> bool:
    """Whether anything waited for the checks of this commit, of which one has ended."""
    at = store.now()
    sql = """
    UPDATE ci_watches SET event_at = :at, due_at = :due_at
    WHERE repo_id = :repo_id AND sha = :sha AND due_at IS NOT NULL AND off_by IS NULL
    """
    due_at = at + QUIET_SECONDS
    return await store.write(lambda db: run(db, sql, at=at, due_at=due_at, repo_id=repo_id, sha=sha)) > 0


async def ask(store: Store, thread: Thread, sha: str, asked: Asked) -> None:
    """Somebody wants the checks of this head mended: a new round, also where that was switched off."""
    at, wish = store.now(), msgspec.json.encode(asked).decode()

    def work(db: Database) -> None:
        known = one(
            db, "SELECT asked FROM ci_watches WHERE repo_id = :r AND number = :n", r=thread.repo.id, n=thread.number
        )
        if known and known["asked"] == wish:
            return
        threads.put_repo(db, thread.repo, thread.installation, at)
        run(db, _PUT, repo_id=thread.repo.id, number=thread.number, sha=sha, at=at, due_at=at, asked=None)
        _begin_anew(db, thread.repo.id, thread.number, fresh=True, keep_wish=False)
        sql = "UPDATE ci_watches SET asked = :wish, off_by = NULL WHERE repo_id = :r AND number = :n"
        run(db, sql, wish=wish, r=thread.repo.id, n=thread.number)

    await store.write(work)


def _begin_anew(db: Database, repo_id: RepoId, number: int, *, fresh: bool, keep_wish: bool) -> None:
    sql = """
    UPDATE ci_watches SET reruns = NULL, round = round + :more, asked = CASE WHEN :keep = 1 THEN asked END
    WHERE repo_id = :repo_id AND number = :number
    """
    run(db, sql, more=int(fresh), keep=int(keep_wish), repo_id=repo_id, number=number)


async def switch_off(store: Store, thread: Thread, login: str) -> None:
    at = store.now()

    def work(db: Database) -> None:
        threads.put_repo(db, thread.repo, thread.installation, at)
        run(db, _PUT, repo_id=thread.repo.id, number=thread.number, sha="", at=at, due_at=None, asked=None)
        sql = "UPDATE ci_watches SET off_by = :login, asked = NULL WHERE repo_id = :r AND number = :n"
        run(db, sql, login=login, r=thread.repo.id, n=thread.number)

    await store.write(work)


async def due(store: Store) -> list[Watch]:
    now = store.now()
    return [Watch.of(row) for row in await store.read(lambda db: many(db, _DUE, now=now))]


async def later(store: Store, watch: Watch, seconds: float) -> None:
    """Look again then, unless something was heard meanwhile."""
    await _settle(store, watch, store.now() + seconds)


async def rest(store: Store, watch: Watch) -> None:
    """Nothing is waited for, unless something was heard meanwhile."""
    await _settle(store, watch, None)


async def _settle(store: Store, watch: Watch, due_at: float | None) -> None:
    sql = f"UPDATE ci_watches SET due_at = :due_at {_SAME} AND event_at = :event_at"  # noqa: S608 - a constant
    await store.write(lambda db: run(db, sql, due_at=due_at, event_at=watch.event_at, **_key(watch)))


async def follow(store: Store, watch: Watch, sha: str) -> None:
    """The head is another one now, and not by us: what was asked for is asked of that, in a new round."""
    at = store.now()
    sql = (
        "UPDATE ci_watches SET sha = :new, round = round + 1, reruns = NULL, event_at = :at, due_at = :due_at "  # noqa: S608
        + _SAME
    )
    await store.write(lambda db: run(db, sql, new=sha, at=at, due_at=at + QUIET_SECONDS, **_key(watch)))


async def was_refused(store: Store, repo_id: RepoId, number: int) -> bool:
    """Whether the newest attempt was to begin and had no money."""
    return await store.read(lambda db: one(db, _REFUSED, repo_id=repo_id, number=number)) is not None


async def look_again(store: Store, repo_id: RepoId, number: int) -> None:
    """At what was refused: there is money now."""
    at = store.now()
    sql = "UPDATE ci_watches SET due_at = :at WHERE repo_id = :repo_id AND number = :number AND off_by IS NULL"
    await store.write(lambda db: run(db, sql, at=at, repo_id=repo_id, number=number))


async def ran_again(store: Store, watch: Watch, reruns: Reruns) -> None:
    """Before it is done, so that it is done once; what runs again has its time to end, anew."""
    at = store.now()
    event_at = at if reruns.runs else watch.event_at
    sql = f"UPDATE ci_watches SET reruns = :reruns, event_at = :event_at, due_at = :at {_SAME}"  # noqa: S608 - a constant
    text = msgspec.json.encode(reruns).decode()
    await store.write(lambda db: run(db, sql, reruns=text, at=at, event_at=event_at, **_key(watch)))


def _key(watch: Watch) -> dict[str, Any]:
    return {"repo_id": watch.repo_id, "number": watch.number, "round": watch.round, "sha": watch.sha}


async def attempts(store: Store, watch: Watch) -> list[Attempt]:
    """Of this round, in their order: those whose turn was begun, and did not find the head moved."""
    values = {"repo_id": watch.repo_id, "number": watch.number, "round": watch.round}
    return [Attempt.of(row) for row in await store.read(lambda db: many(db, _ATTEMPTS, **values))]


async def put_attempt(store: Store, watch: Watch, failing: Sequence[str], notes: Sequence[str]) -> None:
    at = store.now()
    sql = """
    INSERT INTO ci_attempts (source, repo_id, number, round, sha, failing, notes, at)
    VALUES (:source, :repo_id, :number, :round, :sha, :failing, :notes, :at)
    ON CONFLICT (source) DO UPDATE SET failing = excluded.failing, notes = excluded.notes
    """
    lists = {"failing": msgspec.json.encode(failing).decode(), "notes": msgspec.json.encode(notes).decode()}
    await store.write(lambda db: run(db, sql, source=watch.source, at=at, **lists, **_key(watch)))


async def attempt(store: Store, source: str) -> Attempt | None:
    """The one that a turn is."""
    sql = "SELECT *, NULL AS outcome, NULL AS commit_sha FROM ci_attempts WHERE source = :source"
    row = await store.read(lambda db: one(db, sql, source=source))
    return Attempt.of(row) if row else None


def was_taken_back(db: Database, source: str) -> bool:
    """Whether it is an attempt of a round that is over: somebody has switched it off, or begun another one."""
    return one(db, _TAKEN_BACK, source=source) is not None


async def moved(store: Store, source: str) -> None:
    """The head was another one when its turn began: that is no attempt."""
    await store.write(lambda db: run(db, "UPDATE ci_attempts SET moved = 1 WHERE source = :source", source=source))
