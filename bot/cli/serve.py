"""`forgehand serve`: the service, until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot import settings
from bot.cli import console


def command(
    config: Annotated[Path | None, typer.Option(help="A file of NAME=value lines; the environment wins.")] = None,
) -> None:
    """Receive webhooks and run sessions until SIGTERM; what runs then is taken up by the next start."""
    console.run(_serve(config))


async def _serve(config: Path | None) -> None:
    chosen = settings.read(settings.from_environment(config))
    from bot import app

    stop = console.stop_signals()
    async with app.running(chosen) as service:
        console.say(f"Forgehand listens on {service.url}; sandbox: {service.isolation}")
        await stop.wait()
        console.say("Stopping; sessions under way go on when Forgehand is started again.")
