"""`ask`: the agent at work answers a question beside its work; without one, a turn answers it and changes no file."""

from __future__ import annotations

from bot.commands import Command, CommandText
from bot.errors import CommandError
from bot.events.threads import Remark
from bot.handlers import turns
from bot.handlers.desk import Desk, Feature, Handled
from bot.handlers.turns import Wish


def read(text: CommandText) -> Command:
    prompt, options = text.taken()
    if not prompt:
        raise CommandError(f"What is the question? `{text.ours} ask how is the cache invalidated?`, for example.")
    return Command("ask", prompt, options)


async def handle(command: Command, remark: Remark, desk: Desk) -> Handled:
    return await turns.ask(Wish(command.word, command.prompt, command.options), remark, desk)


FEATURE = Feature("ask", "ask …", "answers a question; pushes nothing", read=read, handle=handle)
