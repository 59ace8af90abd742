"""Answers to approvals: which one is meant, and whether it still counts."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace

from bot.commands import Command, CommandText
from bot.errors import CommandError, GitHubRefused
from bot.events.threads import Remark, ReviewWanted
from bot.handlers.desk import Desk, Handled
from bot.live.questions import answerable
from bot.models import WHOLE_SECOND, TurnState
from bot.store import approvals, sessions
from bot.store.approvals import Approval, ApprovalAnswer, ApprovalKind, ApprovalState
from bot.text.markup import shown
from bot.words import on_approvals, on_estimates, on_forks

log = logging.getLogger(__name__)

LATE = (ApprovalState.OPEN, ApprovalState.EXPIRED)
"""States in which an agent's question can be answered; if the agent is gone, a yes starts the next turn."""
_EXPIRE = (ApprovalKind.PLAN, ApprovalKind.PUSH, ApprovalKind.FORK, ApprovalKind.PRICE)
"""Kinds that expire by time; an agent's questions expire with the agent."""
_EXPIRED = {
    ApprovalKind.PLAN: on_approvals.plan_expired,
    ApprovalKind.PUSH: on_approvals.push_expired,
    ApprovalKind.PRICE: on_estimates.expired,
}
_ANSWER = re.compile(
    r"(?:(`?)([a-z0-9]{8}-\d{1,5}(?:-\d{1,5}|-fork)?|[0-9a-f]{12,40})\1(?=\s|\Z)[ \t]*)?"
    r"(?:(once|session)(?=\s|\Z)[ \t]*)?(?=[\r\n]|\Z)",
    re.IGNORECASE,
)
"""After `approve` or `deny`: an approval's id or a commit, and the scope of a yes."""
_SOME_NAME = re.compile(r"(?=\S{0,199}\d)(\S{7,200})[ \t]*(?=[\r\n]|\Z)")
"""A word that looks like a broken id; no words of work look like that."""
_COMMIT = re.compile(r"[0-9a-f]{12,40}\Z")


@dataclass(frozen=True)
class Word(Command):
    """A yes or a no; the text below it is the edited plan, or words for the agent."""

    approval: str | None = None
    """An approval's id, or a commit; None: the only one that waits."""
    scope: str = "once"
    """`once`, or `session` to allow the same again."""


def named(text: CommandText, verb: str) -> re.Match[str] | None:
    """Match the id that an answer names; refuse a broken one, which would else run as paid work."""
    match = _ANSWER.match(text.after)
    if match is not None and (verb == "approve" or not match[3]):
        return match
    if (name := _SOME_NAME.match(text.after)) is not None:
        raise CommandError(
            f"{shown(name[1])} is not an approval ID; use the one beside the question, such as "
            f"`{text.ours} {verb} ab12cd34-1`, or the first twelve characters of a commit."
        )
    return None


def name(match: re.Match[str]) -> str | None:
    return match[2].lower() if match[2] else None


def open_states(approval: Approval) -> tuple[ApprovalState, ...]:
    return LATE if approval.kind is ApprovalKind.TOOL else (ApprovalState.OPEN,)


async def meant(command: Word, remark: Remark, desk: Desk) -> Approval | str:
    """Find the approval that is answered, or say why there is none; the same text again is the same answer."""
    approval = await _found(command, remark, desk)
    if isinstance(approval, str) or approval.source == remark.source:
        return approval
    if sentence := await _found_over(approval, remark.created_at, desk):
        return sentence
    counts = approval.state in open_states(approval)
    is_over = approval.state is ApprovalState.EXPIRED  # perhaps because of a push to the fork
    void = await _void_now(approval, remark, desk) if counts or is_over else None
    return void or (approval if counts else _answered(approval))


async def give(given: ApprovalAnswer, approval: Approval, remark: Remark, desk: Desk) -> Approval | Handled:
    """Store the answer and return the approval; refuse if someone else was quicker."""
    counts = await approvals.answer(desk.store, approval.id, given)
    approval = await approvals.get(desk.store, approval.id) or approval
    if not counts:
        return await desk.refuse(remark, _answered(approval))
    desk.poke(approval.key)
    await desk.redraw(approval.key)
    return approval


async def expire(desk: Desk) -> None:
    """Withdraw what nobody approved in time, and say so in the thread unless its comment does."""
    for kind in _EXPIRE:
        for approval in await approvals.due(desk.store, kind, desk.clock()):
            if approval.kind is not ApprovalKind.FORK:  # its own comment says so
                await _tell(approval, desk)
            await _take_away(approval, desk)


async def pushed(event: ReviewWanted, desk: Desk) -> None:
    """Withdraw questions about a fork's code from before this push."""
    latest = await sessions.latest(desk.store, event.thread)
    if latest is None or not event.is_push:
        return
    for one in await approvals.of_session(desk.store, latest.key.session):
        is_about = one.sha is not None and (await sessions.turn(desk.store, one.key)).number == event.thread.number
        if is_about and one.state is ApprovalState.OPEN and one.sha != event.head_sha:
            await _take_away(one, desk)


def _answered(approval: Approval) -> str:
    return on_approvals.answered_already(approval.id, approval.state, approval.answered_by)


async def _found(command: Word, remark: Remark, desk: Desk) -> Approval | str:
    """Find it by its id, on this thread only; without an id, take the only one that can be answered."""
    given, latest = command.approval, await sessions.latest(desk.store, remark.thread)
    known = await approvals.of_session(desk.store, latest.key.session) if latest else []
    answered_here = [one for one in known if one.source == remark.source]
    if answered_here:
        return answered_here[0]
    if given is not None and _COMMIT.match(given):  # the newest about it: a fork's commit, or a held one of ours
        about = [one for one in known if one.commit is not None and one.commit.startswith(given)]
        return about[-1] if about else on_forks.no_such_commit(given)
    if given is not None:
        found = next((one for one in known if one.id == given), None)
        if found is not None:
            return _unless_a_forks(command, found, desk)
        return on_approvals.no_such_approval(given, command.word, desk.settings.command)
    waiting = [one for one in known if one.state is ApprovalState.OPEN]
    if not waiting and latest is not None and latest.state is TurnState.DONE:
        waiting = answerable([one for one in known if one.key == latest.key])
    if not waiting:
        return on_approvals.nothing_waits(desk.settings.command)
    known_then = [one for one in waiting if one.asked_at < remark.created_at + WHOLE_SECOND]
    return _the_only(known_then, waiting, command, desk)


def _the_only(known_then: list[Approval], waiting: list[Approval], command: Word, desk: Desk) -> Approval | str:
    """Choose the only one that the person can have seen: a late delivery may meet others that were asked since."""
    ours = [one for one in known_then if one.sha is None] or known_then
    if len(ours) == 1:
        return _unless_a_forks(command, ours[0], desk)
    say = on_approvals.several_wait if ours else on_approvals.asked_since
    return say([one.id for one in ours or waiting], command.word, desk.settings.command)


def _unless_a_forks(command: Word, one: Approval, desk: Desk) -> Approval | str:
    """Refuse a bare yes to a fork's code: it must name the commit."""
    if one.sha is None or command.word == "deny":
        return one
    return on_forks.name_the_commit(one.sha, desk.settings.command)


async def _found_over(approval: Approval, said_at: float, desk: Desk) -> str | None:
    """Say that the answer came too late, even if nothing has withdrawn the question yet."""
    over_at = min(said_at, desk.clock())
    if approval.kind not in _EXPIRE or approval.state is not ApprovalState.OPEN or approval.expires_at > over_at:
        return None
    await _take_away(approval, desk)
    return _over(approval, desk)


async def _void_now(approval: Approval, remark: Remark, desk: Desk) -> str | None:
    """Say that the fork's branch has moved on; GitHub's delivery about it may still be under way."""
    if approval.sha is None:
        return None
    turn, at = await sessions.turn(desk.store, approval.key), desk.github.installation(remark.thread.installation)
    pull = await at.pull(remark.thread.repo, turn.number)
    if pull.head_sha == approval.sha:
        return None
    await _take_away(approval, desk)
    return on_forks.void(approval.sha, pull.head_sha, desk.settings.command)


async def _take_away(approval: Approval, desk: Desk) -> None:
    await approvals.expire(desk.store, approval.id)
    await desk.redraw(approval.key)


def _over(approval: Approval, desk: Desk) -> str:
    command = desk.settings.command
    if approval.sha is not None:
        return on_forks.over(approval.sha, command)
    return _EXPIRED[approval.kind](approval.id, command)


async def _tell(approval: Approval, desk: Desk) -> None:
    """Say that it has expired. This comes before the row changes; after a crash, the marker finds the comment."""
    turn = await sessions.turn(desk.store, approval.key)
    thread = replace((await sessions.session(desk.store, approval.session_id)).thread, number=turn.number)
    marker = f"<!-- forgehand:expired={approval.id} -->"
    try:
        await desk.outbound.comment(thread, f"{marker}\n{_over(approval, desk)}", marker)
    except GitHubRefused as error:  # a locked thread or a removed App: it expires all the same
        log.warning("could not say that it expired", extra={"approval": approval.id, "error": str(error)})
