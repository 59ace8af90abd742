"""The comments in which people are asked, beside the live ones: which they are, and whether they show how it stands."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models import SessionId, TurnKey
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import many, one, run


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
    """It exists; found again it is the same."""
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
    """Of a turn: those that do not show how it stands."""
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
    await store.write(lambda db: run(db, sql, id=question.approval_id, by_bot=int(by_bot)))


async def question_gone(store: Store, question: QuestionComment) -> None:
    """It was deleted, or cannot be edited any more: the live comment tells the same."""
    await store.write(lambda db: run(db, "DELETE FROM questions WHERE approval_id = :id", id=question.approval_id))
