"""Checks: the runs that show our turns at GitHub, and the pull requests whose checks are watched and fixed.

A watch is one row with the head that it is about. Attempts are counted in rounds. A person's wish starts a round, and
so does a commit that is not a fix of ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bot.commands.options import NO_OPTIONS, Options
from bot.models import InstallationId, Outcome, RepoId, Thread, TurnKey, TurnState
from bot.store import repos
from bot.store.base import Store
from bot.store.records import OfRepo, OfTurn, Record
from bot.store.rows import Database, one, run, statement

QUIET_SECONDS = 15.0
"""After one check of a commit has ended, another may just be starting."""


@dataclass(frozen=True)
class FixRequest:
    """A person's wish that we fix the checks."""

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
    """Runs repeated at a commit, to tell a flake from a failure."""

    runs: dict[str, int]
    """The failed attempt of each run of Actions, by its number."""
    names: tuple[str, ...]
    """The failed checks."""
    note: str = ""
    """The reason if nothing was run again."""


@dataclass(frozen=True)
class CheckWatch(OfRepo):
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
        """The attempt at this commit: one in each round."""
        return f"ci:{self.repo_id}:{self.number}:{self.round}:{self.sha}"

    @property
    def wish(self) -> FixRequest | None:
        return None if self.asked is None else msgspec.convert(self.asked, FixRequest)

    @property
    def rerun(self) -> Reruns | None:
        return None if self.reruns is None else msgspec.convert(self.reruns, Reruns)


@dataclass(frozen=True)
class Attempt(Record):
    """One attempt and the outcome of its turn; None: it is under way."""

    source: str
    sha: str
    failing: tuple[str, ...]
    notes: tuple[str, ...]
    outcome: Outcome | None
    commit_sha: str | None


@dataclass(frozen=True)
class Ours(Record):
    kind: str
    requester: str
    requester_id: int
    pull_number: int
    newest: str
    """The last commit that its session pushed to that pull request."""


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
    """Return the turn that pushed the commit, if its pull request is known."""
    return await Ours.one(store, _OURS, sha=sha, repo_id=repo_id)


async def heard(store: Store, repo_id: RepoId, number: int, sha: str, *, fresh: bool, only_asked: bool = False) -> bool:
    """Note that a check of a commit of ours has ended, or that we just pushed it; False if nobody wants us to watch.

    A `fresh` commit is not a fix of ours, so the count of attempts starts over."""
    at = store.now()

    def work(db: Database) -> bool:
        known = one(db, "SELECT * FROM ci_watches WHERE repo_id = :r AND number = :n", r=repo_id, n=number)
        if known and known["off_by"] is not None:
            return False
        if only_asked and (fresh or not known or known["asked"] is None):
            return False
        run(db, _PUT, repo_id=repo_id, number=number, sha=sha, at=at, due_at=at + QUIET_SECONDS, asked=None)
        if known and known["sha"] != sha:
            _start_over(db, repo_id, number, fresh=fresh, keep_wish=not fresh)
        return True

    return await store.write(work)


async def heard_again(store: Store, repo_id: RepoId, sha: str) -> bool:
    """Look at the commit again, because a check of it has ended; False if nothing waited for it."""
    at = store.now()
    sql = """
    UPDATE ci_watches SET event_at = :at, due_at = :due_at
    WHERE repo_id = :repo_id AND sha = :sha AND due_at IS NOT NULL AND off_by IS NULL
    """
    due_at = at + QUIET_SECONDS
    return await store.run(sql, at=at, due_at=due_at, repo_id=repo_id, sha=sha) > 0


async def ask(store: Store, thread: Thread, sha: str, asked: FixRequest) -> None:
    """Start a new round for a person's wish, even if fixing was switched off."""
    at, wish = store.now(), msgspec.json.encode(asked).decode()

    def work(db: Database) -> None:
        known = one(
            db, "SELECT asked FROM ci_watches WHERE repo_id = :r AND number = :n", r=thread.repo.id, n=thread.number
        )
        if known and known["asked"] == wish:
            return
        repos.put_repo(db, thread.repo, thread.installation, at)
        run(db, _PUT, repo_id=thread.repo.id, number=thread.number, sha=sha, at=at, due_at=at, asked=None)
        _start_over(db, thread.repo.id, thread.number, fresh=True, keep_wish=False)
        sql = "UPDATE ci_watches SET asked = :wish, off_by = NULL WHERE repo_id = :r AND number = :n"
        run(db, sql, wish=wish, r=thread.repo.id, n=thread.number)

    await store.write(work)


def _start_over(db: Database, repo_id: RepoId, number: int, *, fresh: bool, keep_wish: bool) -> None:
    sql = """
    UPDATE ci_watches SET reruns = NULL, round = round + :more, asked = CASE WHEN :keep = 1 THEN asked END
    WHERE repo_id = :repo_id AND number = :number
    """
    run(db, sql, more=fresh, keep=keep_wish, repo_id=repo_id, number=number)


async def switch_off(store: Store, thread: Thread, login: str) -> None:
    at = store.now()

    def work(db: Database) -> None:
        repos.put_repo(db, thread.repo, thread.installation, at)
        run(db, _PUT, repo_id=thread.repo.id, number=thread.number, sha="", at=at, due_at=None, asked=None)
        sql = "UPDATE ci_watches SET off_by = :login, asked = NULL WHERE repo_id = :r AND number = :n"
        run(db, sql, login=login, r=thread.repo.id, n=thread.number)

    await store.write(work)


async def due(store: Store) -> list[CheckWatch]:
    return await CheckWatch.many(store, _DUE, now=store.now())


async def later(store: Store, watch: CheckWatch, seconds: float) -> None:
    """Look again after this time, unless something was heard meanwhile."""
    await _settle(store, watch, store.now() + seconds)


async def rest(store: Store, watch: CheckWatch) -> None:
    """Wait for nothing, unless something was heard meanwhile."""
    await _settle(store, watch, None)


async def _settle(store: Store, watch: CheckWatch, due_at: float | None) -> None:
    sql = statement("UPDATE ci_watches SET due_at = :due_at {same} AND event_at = :event_at", same=_SAME)
    await store.run(sql, due_at=due_at, event_at=watch.event_at, **_key(watch))


async def follow(store: Store, watch: CheckWatch, sha: str) -> None:
    """Move the watch to a head that we did not push, in a new round that keeps the wish."""
    at = store.now()
    moved = (
        "UPDATE ci_watches SET sha = :new, round = round + 1, reruns = NULL, event_at = :at, due_at = :due_at {same}"
    )
    sql = statement(moved, same=_SAME)
    await store.run(sql, new=sha, at=at, due_at=at + QUIET_SECONDS, **_key(watch))


async def was_refused(store: Store, repo_id: RepoId, number: int) -> bool:
    """Tell whether the newest attempt could not start for lack of money."""
    return await store.one(_REFUSED, repo_id=repo_id, number=number) is not None


async def look_again(store: Store, repo_id: RepoId, number: int) -> None:
    """Look again at once, because there is money now."""
    sql = "UPDATE ci_watches SET due_at = :at WHERE repo_id = :repo_id AND number = :number AND off_by IS NULL"
    await store.run(sql, at=store.now(), repo_id=repo_id, number=number)


async def ran_again(store: Store, watch: CheckWatch, reruns: Reruns) -> None:
    """Note reruns before they start, so that they start once; their checks get their whole time again."""
    at = store.now()
    event_at = at if reruns.runs else watch.event_at
    sql = statement("UPDATE ci_watches SET reruns = :reruns, event_at = :event_at, due_at = :at {same}", same=_SAME)
    text = msgspec.json.encode(reruns).decode()
    await store.run(sql, reruns=text, at=at, event_at=event_at, **_key(watch))


def _key(watch: CheckWatch) -> dict[str, Any]:
    return {"repo_id": watch.repo_id, "number": watch.number, "round": watch.round, "sha": watch.sha}


async def attempts(store: Store, watch: CheckWatch) -> list[Attempt]:
    """Return this round's attempts in order, without those whose turn found that the head had moved."""
    values = {"repo_id": watch.repo_id, "number": watch.number, "round": watch.round}
    return await Attempt.many(store, _ATTEMPTS, **values)


async def put_attempt(store: Store, watch: CheckWatch, failing: Sequence[str], notes: Sequence[str]) -> None:
    sql = """
    INSERT INTO ci_attempts (source, repo_id, number, round, sha, failing, notes, at)
    VALUES (:source, :repo_id, :number, :round, :sha, :failing, :notes, :at)
    ON CONFLICT (source) DO UPDATE SET failing = excluded.failing, notes = excluded.notes
    """
    lists = {"failing": msgspec.json.encode(failing).decode(), "notes": msgspec.json.encode(notes).decode()}
    await store.run(sql, source=watch.source, at=store.now(), **lists, **_key(watch))


async def attempt(store: Store, source: str) -> Attempt | None:
    sql = "SELECT *, NULL AS outcome, NULL AS commit_sha FROM ci_attempts WHERE source = :source"
    return await Attempt.one(store, sql, source=source)


def was_taken_back(db: Database, source: str) -> bool:
    """Tell whether the attempt's round is over: someone switched it off or started another."""
    return one(db, _TAKEN_BACK, source=source) is not None


async def moved(store: Store, source: str) -> None:
    """Stop counting an attempt whose turn found that the head had moved."""
    await store.run("UPDATE ci_attempts SET moved = 1 WHERE source = :source", source=source)


MOST_TRIES = 20
MOVED = "moved"
_ONE = "WHERE session_id = :session AND turn = :turn AND sha = :sha"


@dataclass(frozen=True)
class TurnCheck(OfTurn):
    sha: str
    wanted: str
    """The state of the turn to show, or `moved`: the turn has gone on to another commit."""
    installation_id: InstallationId


async def untold_checks(store: Store) -> list[TurnCheck]:
    """Return check runs that do not show the state of their turn yet, unless GitHub has refused them too often."""
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
    return await TurnCheck.many(store, sql, most=MOST_TRIES)


async def show_turn(store: Store, key: TurnKey, sha: str) -> None:
    await store.write(lambda db: put_turn_check(db, key, sha))


async def check_told(store: Store, check: TurnCheck) -> None:
    """Note that GitHub shows it; a turn that is done or moved on needs no further update."""
    sql = statement("UPDATE checks SET told = :wanted, tries = 0, final = :final {one}", one=_ONE)
    final = check.wanted in (TurnState.DONE, MOVED)
    values = {"session": check.session_id, "turn": check.turn, "sha": check.sha, "wanted": check.wanted}
    await store.run(sql, final=final, **values)


async def check_refused(store: Store, check: TurnCheck) -> None:
    sql = statement("UPDATE checks SET tries = tries + 1 {one}", one=_ONE)
    await store.run(sql, session=check.session_id, turn=check.turn, sha=check.sha)


def put_turn_check(db: Database, key: TurnKey, sha: str) -> None:
    """Do what `show_turn` does, within a larger transaction."""
    values = {"session": key.session, "turn": key.n, "sha": sha}
    leave = "UPDATE checks SET moved = 1 WHERE session_id = :session AND turn = :turn AND sha <> :sha"
    come = "INSERT INTO checks (session_id, turn, sha) VALUES (:session, :turn, :sha) ON CONFLICT DO NOTHING"
    run(db, leave, **values)
    run(db, come, **values)
