"""`retry` and `continue`: another turn of the session, with the words of the last one or with new ones."""

from __future__ import annotations

from bot.commands import options
from bot.commands.kinds import Continue, Retry
from bot.commands.options import NO_OPTIONS
from bot.events.remarks import Remark
from bot.funds import Means
from bot.handlers import money, start
from bot.handlers.desk import Desk
from bot.handlers.start import Wish
from bot.handlers.verdicts import Noted
from bot.models import Outcome, TurnState
from bot.store import approvals, budgets, ci, sessions
from bot.store.approvals import Approval, Kind, Standing
from bot.store.sessions import Turn
from bot.words import on_approvals, on_ci, replies

GO_ON = "Go on where you stopped."
CUT_SHORT = (Outcome.OVER_BUDGET, Outcome.STOPPED, Outcome.TIMED_OUT, Outcome.KILLED, Outcome.FAILED)


async def retry(command: Retry, remark: Remark, desk: Desk) -> Noted:
    last = await sessions.latest(desk.store, remark.thread)
    if last is None or last.source == remark.source:
        return await desk.refuse(remark, replies.nothing_to_repeat(desk.settings.command))
    if last.state is not TurnState.DONE:
        return await desk.refuse(remark, replies.still_under_way(desk.settings.command))
    if not last.traits.repeatable and last.outcome is Outcome.PUSHED:
        return await desk.refuse(remark, replies.undone_already(desk.settings.command))
    said = options.over(command.options, start.set_for(last))
    wish = Wish(last.asked_as, last.prompt, said, approval=last.approval)
    return await start.begin(start.anew(last, wish), remark, desk)


async def go_on(command: Continue, remark: Remark, desk: Desk) -> Noted:
    last = await sessions.latest(desk.store, remark.thread)
    bare = not command.prompt and command.options == NO_OPTIONS
    if command.extra_usd and last is not None and bare:
        if pull := await _checks_without_money(last, remark, desk):
            noted = await money.add(command.extra_usd, last, remark, desk, then=on_ci.goes_on())
            await ci.look_again(desk.store, remark.thread.repo.id, pull)
            return noted
        if await _needs_money_alone(last, remark, desk):
            return await money.add(command.extra_usd, last, remark, desk, then=await _what_waits(last, desk))
    prompt = command.prompt or (GO_ON if last else "")
    same = last is not None and not command.prompt and _was_cut_short(last, remark)
    kind = last.asked_as if last is not None and same else "run"
    said = command.options if last is None else start.of_same_model(last, command.options)
    return await start.begin(Wish(kind, prompt, said, command.extra_usd), remark, desk)


async def _needs_money_alone(last: Turn, remark: Remark, desk: Desk) -> bool:
    """It works, or its plan waits for a yes: another turn would be in the way. What was that stays that."""
    if await sessions.by_source(desk.store, remark.source):
        return False
    if last.state is not TurnState.DONE or await budgets.has_added(desk.store, remark.source):
        return True
    return await _open_plan(last, desk) is not None


async def _open_plan(turn: Turn, desk: Desk) -> Approval | None:
    """A commit that is held, or a fork's on offer, needs no money and no agent: beside those the work goes on."""
    asked = await approvals.of_turn(desk.store, turn.key)
    return next((one for one in asked if one.kind is Kind.PLAN and one.state is Standing.OPEN), None)


async def _what_waits(last: Turn, desk: Desk) -> str:
    plan = await _open_plan(last, desk)
    return on_approvals.plan_still_waits(plan.id, desk.settings.command) if plan else ""


async def _checks_without_money(last: Turn, remark: Remark, desk: Desk) -> int | None:
    """The pull request whose red checks were not begun for want of it: they are what goes on."""
    pull = (await sessions.session(desk.store, last.key.session)).pull_number
    if pull is None or not await ci.was_refused(desk.store, remark.thread.repo.id, pull):
        return None
    means = (await money.of_thread(remark.thread, desk)).means
    return pull if means is Means.SPENT or await budgets.has_added(desk.store, remark.source) else None


def _was_cut_short(last: Turn, remark: Remark) -> bool:
    """What it was doing goes on: a review that ran out of money ends as one, and does not begin to mend."""
    return last.outcome in CUT_SHORT and last.traits.goes_on and last.number == remark.thread.number
