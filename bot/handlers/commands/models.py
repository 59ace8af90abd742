"""`models`: the models that `--model` may name."""

from __future__ import annotations

from bot.commands import Command
from bot.events.threads import Remark
from bot.handlers.desk import Desk, Feature, Handled, acted
from bot.sessions.money.budget import Prices
from bot.words import replies


async def handle(_: Command, remark: Remark, desk: Desk) -> Handled:
    names = Prices.at(desk.settings.model).names
    await desk.answer(remark, "models", replies.models(desk.settings.command, names, desk.settings.model.model))
    return acted()


FEATURE = Feature("models", "models", "lists the models that `--model` can name", polite=True, handle=handle)
