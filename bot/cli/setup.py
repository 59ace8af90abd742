"""`forgehand setup`: the page that makes the GitHub App, opened by a token that only the terminal shows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import typer

from bot import settings
from bot.cli import console
from bot.cli.asked import Config


def command(
    config: Config = None,
) -> None:
    """Make the GitHub App (or name one that exists), store its secrets encrypted, and check that all works."""
    if not console.run(guide(settings.from_environment(config))):
        raise typer.Exit(130)
    typer.echo("All is stored. Start it with: forgehand serve")


async def guide(values: Mapping[str, str]) -> bool:
    """Whether it came to its end before somebody stopped it."""
    from bot.setup import serving

    stop = console.stop_signals()
    async with serving(values) as page:
        console.say(f"\n  Open it here:   {page.url}/setup")
        console.say(f"  with the token: {page.token}\n")
        console.say("The token opens it once, in one browser. Ctrl-C ends it; what was stored stays.")
        waiting = [asyncio.create_task(one.wait()) for one in (stop, page.finished)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        return page.finished.is_set()
