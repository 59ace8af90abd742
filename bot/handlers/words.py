"""Commands that only answer: `status`, `cost` and `help`."""

from __future__ import annotations

from bot.events.remarks import Remark
from bot.handlers import money
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted
from bot.live.figures import duration
from bot.models import TurnState, Usage
from bot.store import machines, sessions, spend, threads
from bot.words import endings, on_money, replies


async def help_(remark: Remark, desk: Desk) -> Noted:
    await desk.reply(remark, replies.help_text(desk.settings.command))
    return acted()


async def status(remark: Remark, desk: Desk) -> Noted:
    turn = await sessions.latest(desk.store, remark.thread)
    if turn is None or turn.state is TurnState.DONE:
        await desk.reply(remark, replies.nothing_runs())
        return acted()
    cost = await spend.turn_cost(desk.store, turn.key)
    elapsed = duration(desk.clock() - turn.created_at)
    session = await money.of_thread(remark.thread, desk)
    await desk.reply(remark, replies.status(turn.state, endings.STEP_WORDS[turn.step], elapsed, cost.usd, session))
    return acted(turn.key.session)


async def cost(remark: Remark, desk: Desk) -> Noted:
    """Sums of what the gateway has metered: exact also where the agent's own figures begin anew or are repeated."""
    home = await threads.home(desk.store, remark.thread.repo.id, remark.thread.number)
    costs = await spend.thread_costs(desk.store, home)
    turns = [(key.n, one.usd) for key, one in costs]
    total = sum((one.usage for _, one in costs), Usage())
    under_way, machine = any(one.open for _, one in costs), await machines.thread_cost(desk.store, home)
    session = await money.of_thread(remark.thread, desk)
    await desk.reply(remark, on_money.cost(turns, total, session, under_way=under_way, sandbox_usd=machine.usd))
    return acted(costs[-1][0].session if costs else None)
