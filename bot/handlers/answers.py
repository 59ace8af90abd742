"""`approve` and `deny`: somebody's word on what waits, bound to what was shown; a yes may begin the next turn."""

from __future__ import annotations

from dataclasses import dataclass

from bot.commands import spelling
from bot.commands.kinds import Approve, Deny, Run, word_of
from bot.commands.options import NO_OPTIONS
from bot.events.remarks import Remark
from bot.handlers import expiry, forks, money, start
from bot.handlers.desk import Desk
from bot.handlers.start import Wish
from bot.handlers.verdicts import Noted, acted
from bot.kinds import TRAITS
from bot.live.asked import answerable
from bot.models import WHOLE_SECOND, TurnState
from bot.prompt import carry_out, go_on_with
from bot.store import approvals, sessions
from bot.store.approvals import Answer, Approval, Kind, Scope, Standing
from bot.store.sessions import Turn
from bot.words import on_approvals, on_forks

LATE = (Standing.OPEN, Standing.EXPIRED)
"""A question of an agent that no longer waits can still be answered: the yes begins the next turn."""


@dataclass(frozen=True)
class _Found:
    """The one that is meant, or the sentence that says why none is."""

    approval: Approval | None
    sentence: str = ""


async def handle(command: Approve | Deny, remark: Remark, desk: Desk) -> Noted:
    found = await _meant(command, remark, desk)
    approval = found.approval
    if approval is None:
        return await desk.refuse(remark, found.sentence)
    if too_late := await _too_late(approval, remark, desk):
        return await desk.refuse(remark, too_late)
    begins = approval.kind is Kind.PLAN or approval.state is Standing.EXPIRED
    if isinstance(command, Approve) and begins and (noted := await money.lacking(remark, desk)):
        return noted  # before it counts as answered: it can be said again when there is money
    given = await _answer(command, approval, remark, desk)
    counts = await approvals.answer(desk.store, approval.id, given)
    approval = await approvals.get(desk.store, approval.id) or approval
    if not counts:  # somebody else was quicker
        return await desk.refuse(remark, _answered(approval))
    turn = await sessions.turn(desk.store, approval.key)
    desk.poke(turn.key)
    await desk.show_anew(turn.key)
    if isinstance(command, Approve) and (wish := _follows(command, approval, turn)):
        return await _begin(wish, command, remark, desk)
    if words := _words(command):
        await _pass_on(words, command, remark, desk)
    await desk.react(remark, "+1")
    return acted(approval.session_id, f"{given.state} {approval.id}")


async def in_other_words(command: Run, remark: Remark, desk: Desk) -> Noted | None:
    """A mere `yes` is no work where something waits for one; nor is it taken for an answer, which has to be exact."""
    word = spelling.answer(command.prompt) if command.options == NO_OPTIONS else None
    latest = await sessions.latest(desk.store, remark.thread) if word else None
    if word is None or latest is None:
        return None
    known = await approvals.of_session(desk.store, latest.key.session)
    names = [one.sha or one.id for one in known if one.state is Standing.OPEN]
    return await desk.refuse(remark, on_approvals.say_it_by_name(names, word, desk.settings.command)) if names else None


async def _too_late(approval: Approval, remark: Remark, desk: Desk) -> str | None:
    """The sentence where no answer counts any more; the same text again is the same answer, though."""
    if approval.source == remark.source:
        return None
    if (over := await expiry.found_over(approval, remark.created_at, desk)) is not None:
        return over
    counts = approval.state in _over(approval)
    is_over = approval.state is Standing.EXPIRED  # for which a push to the fork may be the reason
    void = await forks.void_now(approval, remark, desk) if counts or is_over else None
    return void or (None if counts else _answered(approval))


def _over(approval: Approval) -> tuple[Standing, ...]:
    """Which states an answer may still change."""
    return LATE if approval.kind is Kind.TOOL else (Standing.OPEN,)


def _answered(approval: Approval) -> str:
    return on_approvals.answered_already(approval.id, approval.state, approval.answered_by)


async def _answer(command: Approve | Deny, approval: Approval, remark: Remark, desk: Desk) -> Answer:
    over, login, source = _over(approval), remark.author.login, remark.source
    if isinstance(command, Deny):
        return Answer(Standing.DENIED, login, source, over=over)
    turn = await sessions.turn(desk.store, approval.key)
    follows = start.new_turn(_going_on(command, approval, turn), remark, desk)
    return Answer(Standing.APPROVED, login, source, Scope(command.scope), over, begins=follows)


def _words(command: Approve | Deny) -> str:
    return command.words if isinstance(command, Approve) else command.reason


def _follows(command: Approve, approval: Approval, turn: Turn) -> Wish | None:
    """What a yes begins; nothing where the agent still waits for it."""
    if approval.kind is Kind.PUSH:
        return Wish("release", on_approvals.let_go(approval.id), NO_OPTIONS, approval=approval.id)
    if approval.sha is not None:
        return Wish("adopt", f"make the work on {approval.sha} a branch here", NO_OPTIONS, approval=approval.id)
    if approval.kind is Kind.PLAN:
        prompt = carry_out(turn.prompt, command.words or str(approval.matter.get("plan", "")))
        return start.anew(turn, Wish(_kind(turn), prompt, NO_OPTIONS, approval=approval.id))
    return _going_on(command, approval, turn) if approval.late else None


def _going_on(command: Approve, approval: Approval, turn: Turn) -> Wish:
    """What a yes is worth where the agent has ended, perhaps in the very moment in which it was given."""
    prompt = go_on_with(str(approval.matter.get("shown", "")), command.words)
    return start.anew(turn, Wish(_kind(turn), prompt, NO_OPTIONS, approval=approval.id))


def _kind(turn: Turn) -> str:
    """A merge goes on as one: it has two parents. An attempt at checks, too: its push is no news to begin a round."""
    return turn.asked_as if TRAITS[turn.asked_as].changes else "run"


async def _begin(wish: Wish, command: Approve, remark: Remark, desk: Desk) -> Noted:
    noted = await start.begin(wish, remark, desk)
    if command.words and TRAITS[wish.kind].is_free:
        await desk.reply(remark, on_approvals.words_below_a_yes(desk.settings.command))
    return noted


async def _pass_on(words: str, command: Approve | Deny, remark: Remark, desk: Desk) -> None:
    """To the agent that waits. Where none does any more, a yes begins the next turn with them, but a no nothing."""
    heard = await start.steer(Wish("run", words, NO_OPTIONS), remark, desk)
    if heard is None and isinstance(command, Deny):
        await desk.reply(remark, on_approvals.words_below_a_no(desk.settings.command))


async def _meant(command: Approve | Deny, remark: Remark, desk: Desk) -> _Found:
    """By its id, on this thread only; without one, the only thing that waits, also for a late yes."""
    approval_id, latest = command.approval, await sessions.latest(desk.store, remark.thread)
    known = await approvals.of_session(desk.store, latest.key.session) if latest else []
    answered_here = [one for one in known if one.source == remark.source]
    if answered_here:
        return _Found(answered_here[0])
    if forks.names_commit(approval_id):
        one = forks.meant(str(approval_id), known)
        return _Found(one, "" if one else on_forks.no_such_commit(str(approval_id)))
    if approval_id is not None:
        named = [one for one in known if one.id == approval_id]
        if named:
            return _named_only(command, named[0], desk)
        return _Found(None, on_approvals.no_such_approval(approval_id, word_of(command), desk.settings.command))
    waiting = [one for one in known if one.state is Standing.OPEN]
    if not waiting and latest is not None and latest.state is TurnState.DONE:
        waiting = answerable([one for one in known if one.key == latest.key])
    if not waiting:
        return _Found(None, on_approvals.nothing_waits(desk.settings.command))
    known_then = [one for one in waiting if one.asked_at < remark.created_at + WHOLE_SECOND]
    return _the_only(known_then, waiting, command, desk)


def _the_only(known_then: list[Approval], waiting: list[Approval], command: Approve | Deny, desk: Desk) -> _Found:
    """A delivery may come late, or again: by then something else may wait, which the person has not seen."""
    ours = [one for one in known_then if one.sha is None] or known_then
    if len(ours) == 1:
        return _named_only(command, ours[0], desk)
    say = on_approvals.several_wait if ours else on_approvals.asked_since
    return _Found(None, say([one.id for one in ours or waiting], word_of(command), desk.settings.command))


def _named_only(command: Approve | Deny, one: Approval, desk: Desk) -> _Found:
    """Code of a fork is never approved by a word that does not name it."""
    if one.sha is None or isinstance(command, Deny):
        return _Found(one)
    return _Found(None, on_forks.name_the_commit(one.sha, desk.settings.command))
