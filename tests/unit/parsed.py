"""Comments as the service reads them whose App is called `forge`."""

from __future__ import annotations

from bot import commands
from bot.commands.kinds import Command


def parse(body: str) -> Command | None:
    return commands.parse(body, app_slug="forge")
