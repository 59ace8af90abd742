"""`ask`: a turn that answers a question without changing files."""

from __future__ import annotations

from bot.commands import Command, CommandText
from bot.errors import CommandError
from bot.handlers import turns
from bot.handlers.desk import Feature


def read(text: CommandText) -> Command:
    prompt, options = text.taken()
    if not prompt:
        raise CommandError(f"What is the question? `{text.ours} ask how is the cache invalidated?`, for example.")
    return Command("ask", prompt, options)


FEATURE = Feature("ask", "ask …", "answers a question; pushes nothing", read=read, handle=turns.handle)
