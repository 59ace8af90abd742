"""Commands that only answer: `status`, `cost` and `help`."""

from __future__ import annotations

from collections.abc import Sequence

from bot.commands.forms import FORMS
from bot.commands.options import USAGE
from bot.events.remarks import Remark
from bot.handlers import money
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted
from bot.live.figures import duration, ordinal
from bot.models import Outcome, TurnState, Usage
from bot.store import approvals, machines, sessions, spend, threads
from bot.store.approvals import Approval, Kind, Standing
from bot.store.sessions import Turn
from bot.words import endings, on_approvals, on_money, outcomes, replies


async def help_(remark: Remark, desk: Desk) -> Noted:
    forms = [(form.usage, form.what) for form in FORMS]
    await desk.reply(remark, replies.help_text(desk.settings.command, forms, USAGE.values()))
    return acted()


async def status(remark: Remark, desk: Desk) -> Noted:
    latest = await sessions.latest(desk.store, remark.thread)
    if latest is None:
        await desk.reply(remark, replies.nothing_runs())
        return acted()
    turns = await sessions.turns_of(desk.store, latest.key.session)
    under_way = [one for one in turns if one.state is not TurnState.DONE]
    under_way.sort(key=lambda one: one.state is not TurnState.RUNNING)
    session = await money.of_thread(remark.thread, desk)
    asked = await approvals.of_session(desk.store, latest.key.session)
    open_ = _waits_for_a_word(asked, desk)
    if not under_way:
        await desk.reply(remark, replies.at_rest(_ending(latest, asked), session, beside=open_))
        return acted(latest.key.session)
    turn, behind = under_way[0], replies.wait_behind(len(under_way) - 1)
    beside = " ".join(filter(None, (await _in_line(turn, desk), open_, behind)))
    cost, elapsed = await spend.turn_cost(desk.store, turn.key), duration(desk.clock() - turn.created_at)
    step = endings.STEP_WORDS[turn.step]
    await desk.reply(remark, replies.status(turn.state, step, elapsed, cost.usd, session, beside=beside))
    return acted(turn.key.session)


async def _in_line(turn: Turn, desk: Desk) -> str:
    line = await desk.board.line(turn.key) if turn.state is TurnState.QUEUED else None
    return f"{replies.in_line(ordinal(line[0]))} {line[1]}" if line else ""


def _waits_for_a_word(asked: Sequence[Approval], desk: Desk) -> str:
    """A plan, a question, a held commit: also where nothing runs, it is somebody's turn to say something."""
    waiting = [one for one in asked if one.state is Standing.OPEN and one.expires_at > desk.clock()]
    return " ".join(on_approvals.waits_for_a_word(one.sha or one.id, desk.settings.command) for one in waiting)


def _ending(turn: Turn, asked: Sequence[Approval]) -> str:
    """As its comment is headed: of a plan, whether it waits still."""
    plan = next((one for one in asked if one.key == turn.key and one.kind is Kind.PLAN), None)
    if plan is not None and plan.state is not Standing.OPEN:
        return outcomes.plan_headline(plan.state)
    return outcomes.headline(turn.outcome or Outcome.FAILED)


async def cost(remark: Remark, desk: Desk) -> Noted:
    """Sums of what the gateway has metered: exact also where the agent's own figures begin anew or are repeated."""
    home = await threads.home(desk.store, remark.thread.repo.id, remark.thread.number)
    costs = await spend.thread_costs(desk.store, home)
    turns = [(key.n, one.usd) for key, one in costs]
    total = sum((one.usage for _, one in costs), Usage())
    under_way, machine = any(one.open for _, one in costs), await machines.thread_cost(desk.store, home)
    session = await money.of_thread(remark.thread, desk)
    words = on_money.cost(
        turns,
        total,
        session,
        under_way_usd=sum(one.reserved_usd for _, one in costs) if under_way else None,
        unconfirmed_usd=sum(one.unconfirmed_usd for _, one in costs),
        sandbox_usd=machine.usd,
    )
    await desk.reply(remark, words)
    return acted(costs[-1][0].session if costs else None)
