"""Presses instead of comments: boxes in our comments, buttons of check runs and of pages."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from bot.commands import Command
from bot.errors import NotAllowed, StoreError
from bot.events.checks import CheckAsked
from bot.events.threads import BoxTicked, ButtonPressed, CommentDeleted, CommentEdited, Remark
from bot.handlers import remarks, turns
from bot.handlers.commands import retry
from bot.handlers.desk import Desk, Handled, acted, ignored, refused
from bot.live import questions
from bot.live.questions import TickBox
from bot.models import DeliveryId, Origin, Person, SessionId, Thread, TurnKey, TurnState
from bot.store import approvals, audit, posts, sessions
from bot.store.approvals import QuestionComment
from bot.store.deliveries import DeliveryState
from bot.store.posts import LiveComment
from bot.store.sessions import Session, Turn
from bot.words import on_approvals, replies

_OurComment = LiveComment | QuestionComment
_TURN = re.compile(r"([a-z0-9]{8})-(\d{1,5})\Z")
MOST_RESTORED = 5
"""After so many edits by bots we leave the comment alone: two machines must not edit in turns forever."""


@dataclass(frozen=True)
class PressedOnPage(Remark):
    pressed: str = ""
    """The session and turn that it was pressed on; pressing twice counts once."""

    @property
    def source(self) -> str:
        return f"page:{self.thread.repo.id}:{self.pressed}"


async def edited(remark: CommentEdited, desk: Desk) -> Handled:
    """Run the command of a box that someone ticked in our comment, and write the comment again."""
    comment = await _ours(remark, desk)
    if comment is None:
        return await _of_others(remark, replies.edit_with_command(desk.settings.command), desk)
    sender = remark.origin.sender
    if sender.id == (await desk.github.identity()).bot_id:
        return ignored(replies.OWN_EDIT)
    if not sender.is_human and comment.restored >= MOST_RESTORED:
        return ignored("bots have changed our comment again and again, so it is left as it is")
    if isinstance(comment, QuestionComment):
        await approvals.question_spoilt(desk.store, comment, by_bot=not sender.is_human)
    else:
        await posts.spoilt(desk.store, comment.key, by_bot=not sender.is_human)
    try:
        if remark.before is None or not questions.newly(remark.before, remark.body):
            return ignored("our comment was edited; it is written again")
        if isinstance(comment, QuestionComment):
            approval = await approvals.get(desk.store, comment.approval_id)
            offered = questions.offered(approval) if approval else []
        else:
            offered = await desk.board.boxes(comment.key)
        found = questions.ticked(remark.before, remark.body, offered, desk.settings.command)
        return await _carry_out(found, remark, desk) if found else ignored("what was ticked is no longer on offer")
    finally:
        await _rewrite(comment.key, desk)


async def deleted(remark: CommentDeleted, desk: Desk) -> Handled:
    comment = await _ours(remark, desk)
    if comment is None:
        return await _of_others(remark, "a deleted comment ends nothing that it had started", desk)
    if isinstance(comment, QuestionComment):
        await approvals.question_gone(desk.store, comment)
        return ignored("the comment with a question was deleted; the live comment has the question too")
    if comment.final:
        return ignored("the comment of a turn that has ended was deleted, and it is left at that")
    await posts.spoilt(desk.store, comment.key, by_bot=False)
    await _rewrite(comment.key, desk)
    return acted(comment.session_id, "our comment was deleted; it is made again once")


async def of_check_run(event: CheckAsked, desk: Desk) -> Handled:
    """Run `stop` or `retry` for the person who pressed it, if they may write here."""
    if event.app_id != (await desk.github.identity()).app_id:
        return ignored("it is the check run of another App")
    remark = await _pressed_on_check(event, desk)
    if remark is None:
        return ignored("no turn of ours is known for this check run")
    if not (decision := await desk.judge(remark)).allowed:
        return refused(decision.reason)
    if event.wish == "retry":
        if await sessions.by_source(desk.store, remark.source):
            return ignored("this check run was run again before")
        return await _retry(remark, desk)
    if event.wish != "stop":
        return ignored("there is no such button")
    latest = await sessions.latest(desk.store, remark.thread)
    if latest is None or not await turns.stop_all(latest.key.session, remark.author.login, desk):
        return ignored("nothing was running any more")
    return acted(latest.key.session)


async def press_stop(session: Session, person: Person, desk: Desk) -> str:
    """Stop the session and say so; NotAllowed for people who may not."""
    await _require(await _pressed_on_page("stop", session, person, desk), desk)
    if not await turns.stop_all(session.id, person.login, desk):
        return replies.nothing_runs()
    await audit.add(desk.store, person.login, "stop on the page", session.id)
    return "Forgehand is stopping it, and keeps the work so far."


async def press_retry(session: Session, person: Person, desk: Desk) -> str:
    begun, words = await _again(session, person, desk)
    if begun:
        await audit.add(desk.store, person.login, "retry on the page", session.id)
    return words


async def retry_as_operator(session: Session, desk: Desk) -> tuple[bool, str]:
    """Retry for the person who asked for the last turn, who must still have write access; the operator has none."""
    last = await _last(session, desk)
    person = Person(last.requester_id, last.requester)
    begun, words = await _again(session, person, desk)
    if begun:
        await audit.add(desk.store, "operator", "retry on the command line", session.id, f"for {person.login}")
    return begun, words


async def _of_others(remark: CommentEdited | CommentDeleted, reason: str, desk: Desk) -> Handled:
    return ignored(reason if await desk.names_us(remark) else replies.NO_COMMAND)


async def _ours(remark: CommentEdited | CommentDeleted, desk: Desk) -> _OurComment | None:
    if remark.comment_id is None:
        return None
    live = await posts.by_comment(desk.store, remark.comment_id)
    return live or await approvals.question_of_comment(desk.store, remark.comment_id)


async def _rewrite(key: TurnKey, desk: Desk) -> None:
    turn = await sessions.turn(desk.store, key)
    desk.board.touch(key, final=turn.state is TurnState.DONE, pressing=True)


async def _carry_out(found: list[TickBox], remark: CommentEdited, desk: Desk) -> Handled:
    """Run the command beside the box; if several were ticked, say so to people who may command us."""
    if (box := questions.meant(found)) is not None:
        return await remarks.handle(await _tick(box, remark, desk), desk)
    unclear = await _tick(TickBox("", " ".join(one.command for one in found)), remark, desk)
    if not (decision := await desk.judge(unclear)).allowed:
        return refused(decision.reason)
    return await desk.refuse(unclear, on_approvals.several_ticked([one.label for one in found]))


async def _tick(box: TickBox, remark: CommentEdited, desk: Desk) -> BoxTicked:
    """Make a remark of a ticked box. The payload names our App as the comment's author, or the App that edited it."""
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


async def _pressed_on_check(event: CheckAsked, desk: Desk) -> ButtonPressed | None:
    """Make a remark on the turn's thread, because a check run names none."""
    named = _TURN.match(event.external_id)
    if named is None:
        return None
    try:
        turn = await sessions.turn(desk.store, TurnKey(SessionId(named[1]), int(named[2])))
        session = await sessions.session(desk.store, turn.key.session)
    except StoreError:
        return None
    if session.repo_id != event.repo.id:
        return None
    thread = replace(session.thread, repo=event.repo, installation=event.installation, number=turn.number)
    now = desk.clock()
    return ButtonPressed(event.origin, thread, event.origin.sender, "", now, None, None, pressed=event.external_id)


async def _pressed_on_page(word: str, session: Session, person: Person, desk: Desk) -> PressedOnPage:
    """Make a remark where the last turn was."""
    last, home = await _last(session, desk), session.thread
    return PressedOnPage(
        origin=Origin(DeliveryId(""), "page", word, person),
        thread=Thread(home.repo, home.installation, last.number, home.is_pull),
        author=person,
        body=f"{desk.settings.command} {word}",
        created_at=desk.clock(),
        comment_id=None,
        via_app=None,
        pressed=f"{session.id}:{last.n}",
    )


async def _retry(remark: Remark, desk: Desk) -> Handled:
    remark = replace(remark, thread_sha256=await desk.text_digest(remark.thread))
    return await retry.handle(Command("retry"), remark, desk)


async def _again(session: Session, person: Person, desk: Desk) -> tuple[bool, str]:
    """Start another turn; the flag says whether it started."""
    remark = await _pressed_on_page("retry", session, person, desk)
    await _require(remark, desk)
    if (await _last(session, desk)).state is not TurnState.DONE:
        return False, "It is still under way."
    noted = await _retry(remark, desk)
    if noted.state is DeliveryState.REFUSED:
        raise NotAllowed(noted.reason or "Not possible now.")
    return True, "Another turn will start."


async def _require(remark: PressedOnPage, desk: Desk) -> None:
    decision = await desk.judge(remark)
    if not decision.allowed:
        raise NotAllowed(f"Nothing was done: {decision.reason}.")


async def _last(session: Session, desk: Desk) -> Turn:
    return (await sessions.turns_of(desk.store, session.id))[-1]
