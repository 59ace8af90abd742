"""`forgehand serve`: the service, until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot import settings
from bot.cli import console, setup, start
from bot.cli.asked import Config
from bot.errors import SettingsError
from bot.settings import ModelSettings, names


def command(
    config: Config = None,
    poll: Annotated[
        bool, typer.Option("--poll", help="Read GitHub's log of deliveries instead of being called: no public address.")
    ] = False,
) -> None:
    """Receive webhooks and run sessions until SIGTERM; what runs then is taken up by the next start."""
    console.run(_serve(config, poll))


async def _serve(config: Path | None, poll: bool) -> None:
    values = settings.from_environment(config)
    for name, meant in names.mistyped(values).items():
        console.say(names.sentence(name, meant))
    if await start.has_no_app(values) and not await setup.guide(values):
        return
    chosen = await start.chosen(values, poll=poll)
    console.require_git()
    _require_price(chosen.model)
    from bot import app

    stop = console.stop_signals()
    async with app.running(chosen) as service:
        way = f"reads GitHub's log every {chosen.poll_seconds:g} s, and listens" if chosen.poll_seconds else "listens"
        console.say(f"Forgehand {way} on {service.url}; sandbox: {service.isolation}")
        await stop.wait()
        console.say("Stopping; sessions under way go on when Forgehand is started again.")


def _require_price(model: ModelSettings) -> None:
    """Without it every session would be refused by the gateway."""
    from bot.sessions.money.prices import Prices, UnknownPrice

    try:
        Prices(model.prices).of(model.model)
    except UnknownPrice as unknown:
        raise SettingsError(f"FORGEHAND_MODEL: {unknown}") from None
