"""`continue`: another turn of the session, with new words, with more money, or with both; or the money alone."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.commands import FREE_TEXT, Command, CommandText, trimmed
from bot.commands.options import NO_OPTIONS, dollars, take
from bot.errors import CommandError
from bot.events.threads import Remark
from bot.funds import FundsState
from bot.handlers import turns
from bot.handlers.desk import Desk, Feature, Handled
from bot.handlers.turns import Wish
from bot.models import Outcome, TurnState
from bot.store import approvals, ci, sessions, spend
from bot.store.approvals import Approval, ApprovalKind, ApprovalState
from bot.store.sessions import Turn
from bot.text.markup import shown
from bot.words import on_approvals, on_ci

GO_ON = "Go on where you stopped."
CUT_SHORT = (Outcome.OVER_BUDGET, Outcome.STOPPED, Outcome.TIMED_OUT, Outcome.KILLED, Outcome.FAILED)

_EXTRA = re.compile(r"\+[ \t]*(\S*)[ \t]*(?:(?:dollars?|usd)[ \t]*(?=[\r\n]|\Z))?", re.IGNORECASE)
_BARE = re.compile(r"\$?(\d{1,6}(?:\.\d{1,2})?)[ ]?(?:\$|dollars?|usd)?", re.IGNORECASE)


@dataclass(frozen=True)
class Continuation(Command):
    extra_usd: float | None = None


def read(text: CommandText) -> Continuation:
    after, options = take(text.after, text.options)
    match, extra = _EXTRA.match(after), None
    if match is not None:
        extra = dollars(match[1])
        if extra is None:
            raise CommandError(
                f"{shown(match.group().strip())} is not an amount: `{text.ours} continue +3` adds three dollars."
            )
        after, options = take(after[match.end() :], options)
    elif (bare := _BARE.fullmatch(after.strip())) is not None:
        raise CommandError(
            f"Did you mean `{text.ours} continue +{bare[1]}`, which adds {bare[1]} dollars to the session?"
        )
    return Continuation("continue", trimmed(after), options, extra)


async def handle(command: Continuation, remark: Remark, desk: Desk) -> Handled:
    last = await sessions.latest(desk.store, remark.thread)
    bare = not command.prompt and command.options == NO_OPTIONS
    if command.extra_usd and last is not None and bare:
        if pull := await _checks_without_money(last, remark, desk):
            noted = await turns.add_money(command.extra_usd, last, remark, desk, then=on_ci.goes_on())
            await ci.look_again(desk.store, remark.thread.repo.id, pull)
            return noted
        if await _needs_money_alone(last, remark, desk):
            plan = await _open_plan(last, desk)
            waits = on_approvals.plan_still_waits(plan.id, desk.settings.command) if plan else ""
            return await turns.add_money(command.extra_usd, last, remark, desk, then=waits)
    prompt = command.prompt or (GO_ON if last else "")
    kind = FREE_TEXT
    if last is not None and not command.prompt and last.outcome in CUT_SHORT:
        # What it was doing goes on: a review that ran out of money ends as one, and does not begin to mend.
        same = last.traits.goes_on and last.number == remark.thread.number
        kind = last.asked_as if same else kind
    said = command.options if last is None else turns.with_same_model(last, command.options)
    return await turns.begin(Wish(kind, prompt, said, command.extra_usd), remark, desk)


async def _needs_money_alone(last: Turn, remark: Remark, desk: Desk) -> bool:
    """Tell whether another turn would be in the way, because one works or a plan waits for a yes."""
    if await sessions.by_source(desk.store, remark.source):
        return False
    if last.state is not TurnState.DONE or await spend.has_raised(desk.store, remark.source):
        return True
    return await _open_plan(last, desk) is not None


async def _open_plan(turn: Turn, desk: Desk) -> Approval | None:
    """Find a plan that waits; a held commit or a fork's needs neither money nor agent, and does not count."""
    asked = await approvals.of_turn(desk.store, turn.key)
    return next((one for one in asked if one.kind is ApprovalKind.PLAN and one.state is ApprovalState.OPEN), None)


async def _checks_without_money(last: Turn, remark: Remark, desk: Desk) -> int | None:
    """Return the pull request whose failing checks wait for money: they are what continues."""
    pull = (await sessions.session(desk.store, last.key.session)).pull_number
    if pull is None or not await ci.was_refused(desk.store, remark.thread.repo.id, pull):
        return None
    means = (await turns.funds_of(remark.thread, desk)).means
    return pull if means is FundsState.SPENT or await spend.has_raised(desk.store, remark.source) else None


FEATURE = Feature(
    "continue",
    "continue +3 …",
    "continues where the last turn ended, with 3 more dollars for the session. If a turn runs or a plan waits, and you "
    "add no words, it only adds the money",
    read=read,
    handle=handle,
)
