"""Approvals that wait for a person's yes or no, and the comments that ask.

An approval covers what it showed and is answered once; the audit trail has every answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import msgspec

from bot.models import SessionId, TurnKey
from bot.store import audit, bulletins, posts, sessions
from bot.store.base import Store
from bot.store.records import NewTurn, OfTurn
from bot.store.rows import Database, many, one, run, statement

ARRIVES_WITHIN_SECONDS = 600.0
"""An answer given in time counts even if GitHub reports it this much later."""


class ApprovalKind(StrEnum):
    PLAN = "plan"
    TOOL = "tool"
    PUSH = "push"
    """A held commit; `matter` names it."""
    FORK = "fork"
    """Code of a fork that would become a branch of the repository; only an answer with the commit's name counts."""
    PRICE = "price"
    """A turn whose estimate is above the repository's `ask_above`; it has not begun."""


class ApprovalState(StrEnum):
    OPEN = "open"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"


class Scope(StrEnum):
    ONCE = "once"
    SESSION = "session"


@dataclass(frozen=True)
class Approval(OfTurn):
    id: str
    """Session and turn: `ab12cd34-2` is a plan, `ab12cd34-2-1` the first question of that turn."""
    kind: ApprovalKind
    state: ApprovalState
    request_id: str
    matter: dict[str, Any]
    """The question as people saw it."""
    asked_at: float
    expires_at: float
    scope: Scope
    answered_by: str | None
    answered_at: float | None
    source: str | None
    """The text in which it was answered."""
    late: bool
    """True if it had expired before the answer."""

    @property
    def sha(self) -> str | None:
        """The fork's commit in question, if any."""
        return self.matter.get("sha") if self.kind is ApprovalKind.FORK else None

    @property
    def commit(self) -> str | None:
        """The commit whose name can answer it: the fork's, or the held one."""
        return self.matter.get("commit") if self.kind is ApprovalKind.PUSH else self.sha

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self.matter.get("hosts", ()))


@dataclass(frozen=True)
class ApprovalRequest:
    key: TurnKey
    kind: ApprovalKind
    matter: dict[str, Any]
    expires_at: float
    request_id: str = ""


@dataclass(frozen=True)
class ApprovalAnswer:
    """A person's answer; the same `source` (the text that holds it) is the same answer."""

    state: ApprovalState
    login: str
    source: str
    scope: Scope = Scope.ONCE
    over: tuple[ApprovalState, ...] = field(default=(ApprovalState.OPEN,))
    """States that it may change."""
    begins: NewTurn | None = None
    """The turn that a yes starts if the agent is gone."""


_SELECT = "SELECT * FROM approvals "
_INSERT = """
INSERT INTO approvals (id, session_id, turn, kind, state, request_id, matter, asked_at, expires_at)
VALUES (:id, :session, :n, :kind, 'open', :request, :matter, :at, :expires_at)
"""
_ANSWER = """
UPDATE approvals SET state = :state, answered_by = :login, answered_at = :at, scope = :scope, source = :source,
       begins = :begins, late = CASE state WHEN 'expired' THEN 1 ELSE 0 END
WHERE id = :id AND state = :was
"""


async def ask(store: Store, question: ApprovalRequest) -> Approval:
    """Find or create it. A new plan, held commit, fork's commit or price replaces the question before."""
    at = store.now()
    return Approval.of(await store.write(lambda db: _ask(db, question, at)))


async def get(store: Store, approval_id: str) -> Approval | None:
    return await Approval.one(store, _SELECT + "WHERE id = :id", id=approval_id)


async def of_turn(store: Store, key: TurnKey) -> list[Approval]:
    sql = _SELECT + "WHERE session_id = :session AND turn = :n ORDER BY asked_at, id"
    return await Approval.many(store, sql, session=key.session, n=key.n)


async def of_session(store: Store, session: SessionId) -> list[Approval]:
    sql = _SELECT + "WHERE session_id = :session ORDER BY asked_at, id"
    return await Approval.many(store, sql, session=session)


async def due(store: Store, kind: ApprovalKind, now: float) -> list[Approval]:
    """Return the open ones that have expired, after the time that a late report may take."""
    sql = _SELECT + "WHERE state = 'open' AND kind = :kind AND expires_at <= :now ORDER BY expires_at"
    until = now - ARRIVES_WITHIN_SECONDS
    return await Approval.many(store, sql, kind=kind, now=until)


async def answer(store: Store, approval_id: str, given: ApprovalAnswer) -> bool:
    """Store the answer; True if it counts, now or since an earlier try."""
    at = store.now()
    return await store.write(lambda db: _answer(db, approval_id, given, at))


async def expire(store: Store, approval_id: str) -> None:
    sql = "UPDATE approvals SET state = 'expired' WHERE id = :id AND state = 'open'"
    await store.run(sql, id=approval_id)


async def missed(store: Store, approval_id: str) -> TurnKey | None:
    """Start a turn, once, for a yes that came after its agent had ended; it counts as a late one."""
    at = store.now()
    late = "UPDATE approvals SET late = 1 WHERE id = :id AND state = 'approved' AND late = 0"

    def work(db: Database) -> TurnKey | None:
        row = one(db, "SELECT begins FROM approvals WHERE id = :id", id=approval_id)
        if not run(db, late, id=approval_id) or row is None or row["begins"] is None:
            return None
        return sessions.put_turn(db, msgspec.json.decode(row["begins"], type=NewTurn), at)

    return await store.write(work)


async def expire_questions(store: Store, key: TurnKey) -> None:
    """Expire the agent's open questions, because its turn has ended."""
    sql = """
    UPDATE approvals SET state = 'expired' WHERE session_id = :session AND turn = :n AND kind = 'tool'
      AND state = 'open'
    """
    await store.run(sql, session=key.session, n=key.n)


def _ask(db: Database, question: ApprovalRequest, at: float) -> Any:
    key = question.key
    same = _SELECT + "WHERE session_id = :session AND turn = :n AND kind = :kind AND request_id = :request"
    found = {"session": key.session, "n": key.n, "kind": question.kind, "request": question.request_id}
    if (known := one(db, same, **found)) is None:
        if question.kind is not ApprovalKind.TOOL:
            _replace(db, question)
        matter = msgspec.json.encode(question.matter).decode()
        made = {"id": _id(db, question), "matter": matter, "at": at, "expires_at": question.expires_at}
        run(db, _INSERT, **found, **made)
        known = one(db, same, **found)
        bulletins.put_asked(db, key, str(made["id"]), question.kind, at)
    return known


def _replace(db: Database, question: ApprovalRequest) -> None:
    """Expire earlier questions: only one comment may offer the answer."""
    open_ = "session_id = :session AND kind = :kind AND state = 'open'"
    which = {"session": question.key.session, "kind": question.kind}
    for row in many(db, statement("SELECT turn FROM approvals WHERE {open_}", open_=open_), **which):
        posts.outdate(db, TurnKey(question.key.session, row["turn"]))
    run(db, statement("UPDATE approvals SET state = 'expired' WHERE {open_}", open_=open_), **which)


def _id(db: Database, question: ApprovalRequest) -> str:
    key = question.key
    if question.kind is ApprovalKind.PLAN:
        return f"{key.session}-{key.n}"
    if question.kind is ApprovalKind.FORK:
        return f"{key.session}-{key.n}-fork"
    sql = "SELECT COUNT(*) AS many FROM approvals WHERE session_id = :session AND turn = :n"
    row = one(db, sql + " AND kind NOT IN ('plan', 'fork')", session=key.session, n=key.n)
    assert row is not None
    return f"{key.session}-{key.n}-{row['many'] + 1}"


def _answer(db: Database, approval_id: str, given: ApprovalAnswer, at: float) -> bool:
    begins = msgspec.json.encode(replace(given.begins, delivery=None)).decode() if given.begins else None
    words = {"begins": begins, "state": given.state, "login": given.login, "scope": given.scope, "source": given.source}
    if any(run(db, _ANSWER, id=approval_id, was=was, at=at, **words) for was in given.over):
        entry = f"{given.state}:{approval_id}:{given.source}"
        audit.note(
            db, audit.AuditEntry(entry, at, given.login, given.state, approval_id, f"{given.scope}, {given.source}")
        )
        return True
    row = one(db, "SELECT source FROM approvals WHERE id = :id", id=approval_id)
    return row is not None and row["source"] == given.source


@dataclass(frozen=True)
class QuestionComment(OfTurn):
    approval_id: str
    comment_id: int
    shows: str | None
    """The approval's state that it shows; None: someone else has edited it."""
    restored: int
    """How often we restored it after a bot's edit."""


_OUTDATED = """
SELECT questions.* FROM questions JOIN approvals ON approvals.id = questions.approval_id
WHERE COALESCE(questions.shows, '') <> approvals.state
"""


async def put_question(store: Store, key: TurnKey, approval_id: str, comment_id: int, shows: str) -> None:
    """Store a comment that exists at GitHub; safe to repeat."""
    sql = """
    INSERT INTO questions (approval_id, session_id, turn, comment_id, shows)
    VALUES (:id, :session, :n, :comment_id, :shows) ON CONFLICT (approval_id) DO NOTHING
    """
    values = {"id": approval_id, "session": key.session, "n": key.n, "comment_id": comment_id, "shows": shows}
    await store.run(sql, **values)


async def question_of_comment(store: Store, comment_id: int) -> QuestionComment | None:
    return await QuestionComment.one(store, "SELECT * FROM questions WHERE comment_id = :id", id=comment_id)


async def outdated_questions(store: Store, key: TurnKey) -> list[QuestionComment]:
    """Return a turn's comments that show an old state."""
    sql = f"{_OUTDATED} AND questions.session_id = :session AND questions.turn = :n ORDER BY questions.comment_id"
    return await QuestionComment.many(store, sql, session=key.session, n=key.n)


async def unsettled_questions(store: Store) -> list[TurnKey]:
    """Return the turns that have outdated comments."""
    rows = await store.many(f"{_OUTDATED} ORDER BY questions.comment_id")
    return list(dict.fromkeys(QuestionComment.of(row).key for row in rows))


async def question_shown(store: Store, question: QuestionComment, state: str) -> None:
    """Note what GitHub shows, unless someone has edited the comment since `question` was read."""
    sql = "UPDATE questions SET shows = :state WHERE approval_id = :id AND COALESCE(shows, '') = :before"
    before = question.shows or ""
    await store.run(sql, id=question.approval_id, state=state, before=before)


async def question_spoilt(store: Store, question: QuestionComment, *, by_bot: bool) -> None:
    """Note that someone else edited it, so that we write it again."""
    sql = "UPDATE questions SET shows = NULL, restored = restored + :by_bot WHERE approval_id = :id"
    await store.run(sql, id=question.approval_id, by_bot=by_bot)


async def question_gone(store: Store, question: QuestionComment) -> None:
    """Forget a comment that was deleted or cannot be edited; the live one says the same."""
    await store.run("DELETE FROM questions WHERE approval_id = :id", id=question.approval_id)
