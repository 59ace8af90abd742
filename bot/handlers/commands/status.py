"""`status`: the thread's running and queued turns, and what waits for an answer."""

from __future__ import annotations

from collections.abc import Sequence

from bot.commands import Command
from bot.events.threads import Remark
from bot.handlers import turns
from bot.handlers.desk import Desk, Feature, Handled, acted
from bot.live.sections import duration, ordinal
from bot.models import Outcome, TurnState
from bot.store import approvals, sessions, spend
from bot.store.approvals import Approval, ApprovalKind, ApprovalState
from bot.store.sessions import Turn
from bot.words import endings, on_approvals, on_estimates, on_money, replies


async def handle(_: Command, remark: Remark, desk: Desk) -> Handled:
    latest = await sessions.latest(desk.store, remark.thread)
    if latest is None:
        await desk.answer(remark, "status", replies.nothing_runs())
        return acted()
    found = await sessions.turns_of(desk.store, latest.key.session)
    under_way = [one for one in found if one.state is not TurnState.DONE]
    under_way.sort(key=lambda one: one.state is not TurnState.RUNNING)
    money = await turns.funds_of(remark.thread, desk)
    asked = await approvals.of_session(desk.store, latest.key.session)
    waiting = [one for one in asked if one.state is ApprovalState.OPEN and one.expires_at > desk.clock()]
    word = desk.settings.command  # an approval may wait even if nothing runs
    open_ = " ".join(on_approvals.waits_for_a_word(one.sha or one.id, word) for one in waiting)
    if not under_way:
        await _answer(replies.at_rest(_ending(latest, asked), money, beside=open_), latest, remark, desk)
        return acted(latest.key.session)
    turn, behind = under_way[0], replies.wait_behind(len(under_way) - 1)
    line = await desk.board.line(turn.key) if turn.state is TurnState.QUEUED else None
    place = f"{replies.in_line(ordinal(line[0]))} {line[1]}" if line else ""
    beside = " ".join(filter(None, (place, open_, behind)))
    cost, elapsed = await spend.turn_cost(desk.store, turn.key), duration(desk.clock() - turn.created_at)
    step = endings.STEP_WORDS[turn.step]
    spent = on_money.spent(cost.usd, cost.unconfirmed_usd)
    await _answer(replies.status(turn.state, step, elapsed, spent, money, beside=beside), turn, remark, desk)
    return acted(turn.key.session)


async def _answer(words: str, turn: Turn, remark: Remark, desk: Desk) -> None:
    await desk.answer(remark, "status", "\n\n".join(filter(None, (words, await desk.links(turn.key)))))


def _ending(turn: Turn, asked: Sequence[Approval]) -> str:
    """Return the headline of the turn's comment; that of a plan or a price says whether it still waits."""
    plan = next((one for one in asked if one.key == turn.key and one.kind is ApprovalKind.PLAN), None)
    if plan is not None and plan.state is not ApprovalState.OPEN:
        return endings.plan_headline(plan.state)
    price = next((one for one in asked if one.key == turn.key and one.kind is ApprovalKind.PRICE), None)
    if price is not None:
        return on_estimates.headline(price.state)
    return endings.headline(turn.outcome or Outcome.FAILED)


FEATURE = Feature(
    "status",
    "status",
    "shows what is running, queued or waiting for an answer, and how much of its budget the session has spent",
    polite=True,
    handle=handle,
)
