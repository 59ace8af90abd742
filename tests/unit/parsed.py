"""Comments as the service reads them whose App is called `forge`."""

from __future__ import annotations

from bot import commands
from bot.commands import Command
from bot.handlers import table


def parse(body: str, *, word: str = "/claude", app_slug: str = "forge") -> Command | None:
    return commands.parse(body, table.TABLE, word=word, app_slug=app_slug)
