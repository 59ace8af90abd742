"""`cost`: the costs of the thread as the gateway has metered them, not the agent's own figures."""

from __future__ import annotations

from bot.commands import Command
from bot.events.threads import Remark
from bot.handlers import turns
from bot.handlers.desk import Desk, Feature, Handled, acted
from bot.models import TokenUsage
from bot.store import machines, repos, spend
from bot.words import on_money


async def handle(_: Command, remark: Remark, desk: Desk) -> Handled:
    home = await repos.home_thread(desk.store, remark.thread.repo.id, remark.thread.number)
    costs = await spend.thread_costs(desk.store, home)
    machine = await machines.thread_cost(desk.store, home)
    under_way = any(one.open for _, one in costs)
    words = on_money.cost(
        [(key.n, one.usd) for key, one in costs],
        sum((one.usage for _, one in costs), TokenUsage()),
        await turns.funds_of(remark.thread, desk),
        under_way_usd=sum(one.reserved_usd for _, one in costs) if under_way else None,
        unconfirmed_usd=sum(one.unconfirmed_usd for _, one in costs),
        sandbox_usd=machine.usd,
    )
    await desk.answer(remark, "cost", words)
    return acted(costs[-1][0].session if costs else None)


FEATURE = Feature(
    "cost", "cost", "shows what the thread has cost and how much of its budget is left", polite=True, handle=handle
)
