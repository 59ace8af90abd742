"""What waits for a person's yes or no, and the comments in which people are asked.

An approval is bound to what was shown, is answered once, and every answer is in the audit trail."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import msgspec

from bot.models import SessionId, TurnKey
from bot.store import audit, comments, sessions
from bot.store.base import Store
from bot.store.records import NewTurn, Record
from bot.store.rows import Database, many, one, run, statement

ARRIVES_WITHIN_SECONDS = 600.0
"""What is said in the last moment counts, though GitHub tells of it some time later."""


class ApprovalKind(StrEnum):
    PLAN = "plan"
    TOOL = "tool"
    PUSH = "push"
    """A commit that is held; `matter` names it."""
    FORK = "fork"
    """Code of a fork, which is to become a branch of the repository: answered by the commit's name alone."""


class ApprovalState(StrEnum):
    OPEN = "open"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"


class Scope(StrEnum):
    """How far a yes reaches."""

    ONCE = "once"
    SESSION = "session"


@dataclass(frozen=True)
class Approval(Record):
    id: str
    """Of its session and turn: `ab12cd34-2` is a plan, `ab12cd34-2-1` the first question of that turn."""
    session_id: SessionId
    turn: int
    kind: ApprovalKind
    state: ApprovalState
    request_id: str
    matter: dict[str, Any]
    """What is asked, as it was shown."""
    asked_at: float
    expires_at: float
    scope: Scope
    answered_by: str | None
    answered_at: float | None
    source: str | None
    """The text in which it was answered."""
    late: bool
    """Answered when nobody waited for it any more."""

    @property
    def key(self) -> TurnKey:
        return TurnKey(self.session_id, self.turn)

    @property
    def sha(self) -> str | None:
        """The fork's commit that is meant, where one is."""
        return self.matter.get("sha") if self.kind is ApprovalKind.FORK else None

    @property
    def commit(self) -> str | None:
        """The commit by whose name it can be answered: the fork's, or the one that is held."""
        return self.matter.get("commit") if self.kind is ApprovalKind.PUSH else self.sha

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts that a yes opens, if that was asked."""
        return tuple(self.matter.get("hosts", ()))


@dataclass(frozen=True)
class ApprovalRequest:
    """What is to be asked; asked again it is found."""

    key: TurnKey
    kind: ApprovalKind
    matter: dict[str, Any]
    expires_at: float
    request_id: str = ""


@dataclass(frozen=True)
class ApprovalAnswer:
    """Somebody's word; `source` names the text, so that the same text again is the same answer."""

    state: ApprovalState
    login: str
    source: str
    scope: Scope = Scope.ONCE
    over: tuple[ApprovalState, ...] = field(default=(ApprovalState.OPEN,))
    """Which states it may still change."""
    begins: NewTurn | None = None
    """Of a yes: the turn that it is worth where the agent is not there to hear it."""


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
    """Found or made. What is asked anew (a plan, a held commit, work on a fork) takes the earlier one's place."""
    at = store.now()
    return Approval.of(await store.write(lambda db: _ask(db, question, at)))


async def get(store: Store, approval_id: str) -> Approval | None:
    row = await store.read(lambda db: one(db, _SELECT + "WHERE id = :id", id=approval_id))
    return Approval.of(row) if row else None


async def of_turn(store: Store, key: TurnKey) -> list[Approval]:
    sql = _SELECT + "WHERE session_id = :session AND turn = :n ORDER BY asked_at, id"
    return [Approval.of(row) for row in await store.read(lambda db: many(db, sql, session=key.session, n=key.n))]


async def of_session(store: Store, session: SessionId) -> list[Approval]:
    """Oldest first."""
    sql = _SELECT + "WHERE session_id = :session ORDER BY asked_at, id"
    return [Approval.of(row) for row in await store.read(lambda db: many(db, sql, session=session))]


async def due(store: Store, kind: ApprovalKind, now: float) -> list[Approval]:
    """Open past their time, and past that in which a word that was in time would be here."""
    sql = _SELECT + "WHERE state = 'open' AND kind = :kind AND expires_at <= :now ORDER BY expires_at"
    until = now - ARRIVES_WITHIN_SECONDS
    return [Approval.of(row) for row in await store.read(lambda db: many(db, sql, kind=kind, now=until))]


async def answer(store: Store, approval_id: str, given: ApprovalAnswer) -> bool:
    """True if this answer counts, now or from an earlier try."""
    at = store.now()
    return await store.write(lambda db: _answer(db, approval_id, given, at))


async def expire(store: Store, approval_id: str) -> None:
    """Nobody answered in time."""
    sql = "UPDATE approvals SET state = 'expired' WHERE id = :id AND state = 'open'"
    await store.write(lambda db: run(db, sql, id=approval_id))


async def missed(store: Store, approval_id: str) -> TurnKey | None:
    """A yes that came when its agent had ended already counts as a late one does: the next turn, begun once."""
    at = store.now()
    late = "UPDATE approvals SET late = 1 WHERE id = :id AND state = 'approved' AND late = 0"

    def work(db: Database) -> TurnKey | None:
        row = one(db, "SELECT begins FROM approvals WHERE id = :id", id=approval_id)
        if not run(db, late, id=approval_id) or row is None or row["begins"] is None:
            return None
        return sessions.put_turn(db, msgspec.json.decode(row["begins"], type=NewTurn), at)

    return await store.write(work)


async def expire_questions(store: Store, key: TurnKey) -> None:
    """The turn has ended: its agent waits no longer."""
    sql = """
    UPDATE approvals SET state = 'expired' WHERE session_id = :session AND turn = :n AND kind = 'tool'
      AND state = 'open'
    """
    await store.write(lambda db: run(db, sql, session=key.session, n=key.n))


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
    return known


def _replace(db: Database, question: ApprovalRequest) -> None:
    """Expire what was asked before: one comment alone offers it."""
    open_ = "session_id = :session AND kind = :kind AND state = 'open'"
    which = {"session": question.key.session, "kind": question.kind}
    for row in many(db, statement("SELECT turn FROM approvals WHERE {open_}", open_=open_), **which):
        comments.outdate(db, TurnKey(question.key.session, row["turn"]))
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
class QuestionComment(Record):
    approval_id: str
    session_id: SessionId
    turn: int
    comment_id: int
    shows: str | None
    """The state of what is asked that stands in it; None: somebody else has changed it."""
    restored: int
    """How often it was put right after a bot had changed it."""

    @property
    def key(self) -> TurnKey:
        return TurnKey(self.session_id, self.turn)


_OUTDATED = """
SELECT questions.* FROM questions JOIN approvals ON approvals.id = questions.approval_id
WHERE COALESCE(questions.shows, '') <> approvals.state
"""


async def put_question(store: Store, key: TurnKey, approval_id: str, comment_id: int, shows: str) -> None:
    """Store the comment that exists; found again, it is the same."""
    sql = """
    INSERT INTO questions (approval_id, session_id, turn, comment_id, shows)
    VALUES (:id, :session, :n, :comment_id, :shows) ON CONFLICT (approval_id) DO NOTHING
    """
    values = {"id": approval_id, "session": key.session, "n": key.n, "comment_id": comment_id, "shows": shows}
    await store.write(lambda db: run(db, sql, **values))


async def question_of_comment(store: Store, comment_id: int) -> QuestionComment | None:
    row = await store.read(lambda db: one(db, "SELECT * FROM questions WHERE comment_id = :id", id=comment_id))
    return QuestionComment.of(row) if row else None


async def outdated_questions(store: Store, key: TurnKey) -> list[QuestionComment]:
    """Comments of a turn that do not show how it stands."""
    sql = f"{_OUTDATED} AND questions.session_id = :session AND questions.turn = :n ORDER BY questions.comment_id"
    rows = await store.read(lambda db: many(db, sql, session=key.session, n=key.n))
    return [QuestionComment.of(row) for row in rows]


async def unsettled_questions(store: Store) -> list[TurnKey]:
    """Turns that have such comments."""
    rows = await store.read(lambda db: many(db, f"{_OUTDATED} ORDER BY questions.comment_id"))
    return list(dict.fromkeys(QuestionComment.of(row).key for row in rows))


async def question_shown(store: Store, question: QuestionComment, state: str) -> None:
    """GitHub was given this, unless somebody has changed it since `question` was read."""
    sql = "UPDATE questions SET shows = :state WHERE approval_id = :id AND COALESCE(shows, '') = :before"
    before = question.shows or ""
    await store.write(lambda db: run(db, sql, id=question.approval_id, state=state, before=before))


async def question_spoilt(store: Store, question: QuestionComment, *, by_bot: bool) -> None:
    """Somebody else changed it: it is to be written anew."""
    sql = "UPDATE questions SET shows = NULL, restored = restored + :by_bot WHERE approval_id = :id"
    await store.write(lambda db: run(db, sql, id=question.approval_id, by_bot=by_bot))


async def question_gone(store: Store, question: QuestionComment) -> None:
    """Forget a comment that was deleted or cannot be edited: the live one tells the same."""
    await store.write(lambda db: run(db, "DELETE FROM questions WHERE approval_id = :id", id=question.approval_id))
