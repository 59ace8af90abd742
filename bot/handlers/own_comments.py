"""Somebody else changed a comment of ours that has boxes: one that is ticked is a command; then it is rendered anew."""

from __future__ import annotations

from bot.events.remarks import BoxTicked, CommentDeleted, CommentEdited
from bot.handlers import permission, remarks
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted, ignored, refused
from bot.live import boxes
from bot.live import questions as live_questions
from bot.live.boxes import Box
from bot.models import TurnKey, TurnState
from bot.store import approvals, comments, questions, sessions
from bot.store.comments import LiveComment
from bot.store.questions import QuestionComment
from bot.words import on_approvals, replies

_Ours = LiveComment | QuestionComment
MOST_RESTORED = 5
"""After so many changes by bots the comment is left as the last of them wrote it: two machines must not take turns."""


async def edited(remark: CommentEdited, desk: Desk) -> Noted:
    comment = await _ours(remark, desk)
    if comment is None:
        return await _of_others(remark, replies.edit_with_command(desk.settings.command), desk)
    sender = remark.origin.sender
    if sender.id == (await desk.github.identity()).bot_id:
        return ignored(replies.OWN_EDIT)
    if not sender.is_human and comment.restored >= MOST_RESTORED:
        return ignored("bots have changed our comment again and again, so it is left as it is")
    await _spoilt(comment, desk, by_bot=not sender.is_human)
    try:
        found = await _ticked(remark, comment, desk)
        return await _carry_out(found, remark, desk) if found else ignored(_why_not(remark))
    finally:
        await _write_anew(comment.key, desk)


async def deleted(remark: CommentDeleted, desk: Desk) -> Noted:
    comment = await _ours(remark, desk)
    if comment is None:
        return await _of_others(remark, "a deleted comment ends nothing that it had started", desk)
    if isinstance(comment, QuestionComment):
        await questions.gone(desk.store, comment)
        return ignored("the comment with a question was deleted; the live comment has the question too")
    if comment.final:
        return ignored("the comment of a turn that has ended was deleted, and it is left at that")
    await comments.spoilt(desk.store, comment.key, by_bot=False)
    await _write_anew(comment.key, desk)
    return acted(comment.session_id, "our comment was deleted; it is made again once")


async def _of_others(remark: CommentEdited | CommentDeleted, reason: str, desk: Desk) -> Noted:
    """Talk that has nothing to do with us needs no reason."""
    return ignored(reason if await desk.names_us(remark) else replies.NO_COMMAND)


async def _ours(remark: CommentEdited | CommentDeleted, desk: Desk) -> _Ours | None:
    if remark.comment_id is None:
        return None
    live = await comments.by_comment(desk.store, remark.comment_id)
    return live or await questions.by_comment(desk.store, remark.comment_id)


async def _spoilt(comment: _Ours, desk: Desk, *, by_bot: bool) -> None:
    if isinstance(comment, QuestionComment):
        await questions.spoilt(desk.store, comment, by_bot=by_bot)
    else:
        await comments.spoilt(desk.store, comment.key, by_bot=by_bot)


async def _write_anew(key: TurnKey, desk: Desk) -> None:
    turn = await sessions.turn(desk.store, key)
    desk.board.touch(key, final=turn.state is TurnState.DONE, pressing=True)


async def _ticked(remark: CommentEdited, comment: _Ours, desk: Desk) -> list[Box]:
    if remark.before is None or not boxes.newly(remark.before, remark.body):
        return []
    return boxes.ticked(remark.before, remark.body, await _offered(comment, desk), desk.settings.command)


async def _offered(comment: _Ours, desk: Desk) -> list[Box]:
    if not isinstance(comment, QuestionComment):
        return await desk.board.boxes(comment.key)
    approval = await approvals.get(desk.store, comment.approval_id)
    return live_questions.offered(approval) if approval else []


def _why_not(remark: CommentEdited) -> str:
    if remark.before is None or not boxes.newly(remark.before, remark.body):
        return "our comment was edited; it is written anew"
    return "what was ticked is no longer on offer"


async def _carry_out(found: list[Box], remark: CommentEdited, desk: Desk) -> Noted:
    """As the command beside the box; where it is not clear which is meant, a sentence for who may be answered."""
    if (box := boxes.meant(found)) is not None:
        return await remarks.handle(await _tick(box, remark, desk), desk)
    unclear = await _tick(Box("", " ".join(one.command for one in found)), remark, desk)
    if not (decision := await permission.judge(unclear, desk)).allowed:
        return refused(decision.reason)
    sentence = on_approvals.several_ticked([one.label for one in found])
    return await desk.refuse(unclear, sentence)


async def _tick(box: Box, remark: CommentEdited, desk: Desk) -> BoxTicked:
    """The App that is named is ours, which wrote the comment, or another by which it was edited in a person's name."""
    word, own_app = desk.settings.command, (await desk.github.identity()).app_id
    return BoxTicked(
        origin=remark.origin,
        thread=remark.thread,
        author=remark.origin.sender,
        body=f"{word} {box.command}",
        created_at=remark.changed_at,
        comment_id=remark.comment_id,
        via_app=None if remark.via_app == own_app else remark.via_app,
        thread_sha256=remark.thread_sha256,
        closed_to_us=remark.closed_to_us,
        approval=box.approval,
    )
