"""`approve`: a yes to exactly what was shown; it may start the next turn."""

from __future__ import annotations

import re

from bot.agent.prompt import carry_out, go_on_with
from bot.commands import FREE_TEXT, CommandText, before_tail, trimmed
from bot.commands.options import NO_OPTIONS
from bot.errors import CommandError
from bot.events.threads import Remark
from bot.handlers import answers, turns
from bot.handlers.answers import Word
from bot.handlers.desk import Desk, Feature, Handled, acted
from bot.handlers.turns import Wish
from bot.kinds import TRAITS
from bot.store import sessions
from bot.store.approvals import Approval, ApprovalAnswer, ApprovalKind, ApprovalState, Scope
from bot.store.sessions import Turn
from bot.text.markup import shown
from bot.words import on_approvals

_SHORT_COMMIT = re.compile(r"`?([0-9a-f]{7}|[0-9a-f]{9,11})`?[ \t]*(?=[\r\n]|\Z)", re.IGNORECASE)
"""A short commit, as GitHub shows it; a word of eight letters may be a session's name."""


def read(text: CommandText) -> Word | None:
    if (short := _SHORT_COMMIT.match(text.after)) is not None:
        raise CommandError(
            f"{shown(short[1])} is too short to approve a commit: give at least the first twelve characters of its "
            "name."
        )
    match = answers.named(text, "approve")
    if match is None:
        return None
    words = trimmed(before_tail(text.after[match.end() :]))
    lines = words.splitlines()
    if all(line.startswith(">") or not line.strip() for line in lines):  # a plan that was quoted to be edited
        words = "\n".join(line.removeprefix(">").removeprefix(" ") for line in lines).strip()
    return text.without_options(
        Word("approve", words, approval=answers.name(match), scope=(match[3] or "once").lower())
    )


async def handle(command: Word, remark: Remark, desk: Desk) -> Handled:
    approval = await answers.meant(command, remark, desk)
    if isinstance(approval, str):
        return await desk.refuse(remark, approval)
    begins = approval.kind in (ApprovalKind.PLAN, ApprovalKind.PRICE) or approval.state is ApprovalState.EXPIRED
    if begins and (noted := await turns.lacking(remark, desk)):
        return noted  # not answered yet, so it can be said again when there is money
    turn = await sessions.turn(desk.store, approval.key)
    late = turns.new_turn(_going_on(command, approval, turn), remark, desk)
    over, scope = answers.open_states(approval), Scope(command.scope)
    given = ApprovalAnswer(ApprovalState.APPROVED, remark.author.login, remark.source, scope, over, begins=late)
    answered = await answers.give(given, approval, remark, desk)
    if isinstance(answered, Handled):
        return answered
    if wish := _follows(command, answered, turn):
        noted = await turns.begin(wish, remark, desk)
        if command.prompt and TRAITS[wish.kind].is_free:
            await desk.reply(remark, on_approvals.words_below_a_yes(desk.settings.command))
        return noted
    if command.prompt:  # if the agent no longer waits, a yes starts the next turn with these words
        await turns.steer(Wish(FREE_TEXT, command.prompt, NO_OPTIONS), remark, desk)
    await desk.react(remark, "+1")
    return acted(answered.session_id, f"{given.state} {answered.id}")


def _follows(command: Word, approval: Approval, turn: Turn) -> Wish | None:
    """Return the turn that a yes starts; None if the agent still waits for it."""
    if approval.kind is ApprovalKind.PUSH:
        return Wish("release", on_approvals.let_go(approval.id), NO_OPTIONS, approval=approval.id)
    if approval.sha is not None:
        return Wish("adopt", f"make the work on {approval.sha} a branch here", NO_OPTIONS, approval=approval.id)
    if approval.kind is ApprovalKind.PLAN:
        prompt = carry_out(turn.prompt, command.prompt or str(approval.matter.get("plan", "")))
        return turns.as_before(turn, Wish(_kind(turn), prompt, NO_OPTIONS, approval=approval.id))
    if approval.kind is ApprovalKind.PRICE:
        same = Wish(turn.asked_as, turn.prompt, turns.options_of(turn), approval=turn.approval, agreed=approval.id)
        return turns.as_before(turn, same)
    return _going_on(command, approval, turn) if approval.late else None


def _going_on(command: Word, approval: Approval, turn: Turn) -> Wish:
    """Return the turn that a yes starts if the agent has ended, perhaps just now."""
    prompt = go_on_with(str(approval.matter.get("shown", "")), command.prompt)
    return turns.as_before(turn, Wish(_kind(turn), prompt, NO_OPTIONS, approval=approval.id))


def _kind(turn: Turn) -> str:
    """Keep the kind of a merge, which has two parents, and of a fix of checks, whose push starts no round."""
    return turn.asked_as if TRAITS[turn.asked_as].changes else FREE_TEXT


FEATURE = Feature(
    "approve",
    "approve",
    "says yes to the plan, price, question or held commit that is waiting. Add its id if several wait, or `session` to "
    "allow the same call for the whole session; an edited plan goes on the lines below. With a fork's commit, it makes "
    "a branch here from that code",
    read=read,
    handle=handle,
)
