"""`forgehand serve`: the service, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Annotated

import typer

from bot import settings
from bot.cli import console, setup, start
from bot.cli.asked import Config
from bot.errors import SettingsError
from bot.settings import ModelSettings, Settings, names

START_SECONDS = 5.0
"""What a start that is told to stop has left for itself; then it is broken off."""


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
    stop, started = console.stop_signals(), asyncio.Event()
    serving = asyncio.create_task(_until(stop, chosen, started))
    told = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, told}, return_when=asyncio.FIRST_COMPLETED)
    if not started.is_set():  # an update of the agent alone may take two minutes
        await asyncio.wait({serving}, timeout=START_SECONDS)
        if not started.is_set():
            serving.cancel()
    told.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await serving


async def _until(stop: asyncio.Event, chosen: Settings, started: asyncio.Event) -> None:
    from bot import app

    async with app.running(chosen) as service:
        started.set()
        app.spare_the_collector()
        way = f"reads GitHub's log every {chosen.poll_seconds:g} s, and listens" if chosen.poll_seconds else "listens"
        console.say(f"Forgehand {way} on {service.url}; sandbox: {service.isolation}")
        await stop.wait()
        console.say("Stopping; sessions under way go on when Forgehand is started again.")


def _require_price(model: ModelSettings) -> None:
    """Without it every session would be refused by the gateway."""
    from bot.sessions.money.budget import Prices, UnknownPrice

    try:
        Prices(model.prices).of(model.model)
    except UnknownPrice as unknown:
        raise SettingsError(f"FORGEHAND_MODEL: {unknown}") from None
