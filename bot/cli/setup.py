"""`forgehand setup`: serves the page that makes the GitHub App; the terminal shows the token that opens it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import typer

from bot import settings
from bot.cli import console
from bot.cli.asked import Config


def command(config: Config = None) -> None:
    """Make the GitHub App (or use an existing one), store its secrets encrypted, and check that everything works."""

    async def guided() -> bool:
        return await guide(settings.from_environment(config))

    if not console.run(guided()):
        raise typer.Exit(130)
    typer.echo("Everything is stored. Start Forgehand with: forgehand serve")


async def guide(values: Mapping[str, str]) -> bool:
    """Serve the page; return False if someone stopped it before the end."""
    from bot.setup import serving

    stop = console.stop_signals()
    async with serving(values) as page:
        console.say(f"\n  Open it here:   {page.url}/setup")
        console.say(f"  with the token: {page.token}\n")
        console.say("The token opens the page once, in one browser. Ctrl-C ends set-up; stored secrets stay.")
        waiting = [asyncio.create_task(one.wait()) for one in (stop, page.finished)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        return page.finished.is_set()
