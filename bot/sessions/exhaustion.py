"""Whether the money of a turn is gone: its own budget, or its installation's for the day or the month."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.sessions import budget
from bot.sessions.budget import Decision, Ledger
from bot.sessions.services import Services
from bot.store import spend
from bot.store.sessions import Turn


async def is_exhausted(services: Services, turn: Turn) -> bool:
    limits = services.settings.limits
    day = datetime.fromtimestamp(services.clock(), UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    turn_cost = await spend.turn_cost(services.store, turn.key)
    today = await spend.installation_cost(services.store, turn.installation_id, day.timestamp())
    month = await spend.installation_cost(services.store, turn.installation_id, day.replace(day=1).timestamp())
    ledgers = [
        Ledger(turn_cost.usd, 0.0, turn.budget_usd),
        Ledger(today.usd, 0.0, limits.day_budget_usd),
        Ledger(month.usd, 0.0, limits.month_budget_usd),
    ]
    return budget.decide(ledgers) is Decision.EXHAUSTED
