"""`forgehand serve`: runs the service until a signal stops it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from pathlib import Path
from typing import Annotated

import typer

from bot import settings
from bot.cli import console, setup, start
from bot.cli.asked import Config
from bot.errors import SettingsError
from bot.settings import Settings, names

START_SECONDS = 5.0
"""How long a start may go on after a stop signal."""
STOP_SECONDS = 15.0
"""Supervisors kill after 20."""


def command(
    config: Config = None,
    poll: Annotated[
        bool, typer.Option("--poll", help="Read GitHub's log of deliveries; needs no public address.")
    ] = False,
) -> None:
    """Receive webhooks and run sessions until SIGTERM; the next start continues running sessions."""
    console.run(_serve(config, poll))


async def _serve(config: Path | None, poll: bool) -> None:
    from bot.sessions.money.budget import Prices, UnknownPrice

    values = settings.from_environment(config)
    for name, meant in names.mistyped(values).items():
        console.say(names.sentence(name, meant))
    if await start.has_no_app(values) and not await setup.guide(values, console.stop_signals()):
        return
    chosen = await start.chosen(values, poll=poll)
    console.require_git()
    try:
        Prices.at(chosen.model).of(chosen.model.model)  # without a price the gateway would refuse every session
    except UnknownPrice as unknown:
        raise SettingsError(f"FORGEHAND_MODEL: {unknown}") from None
    stop, started = console.stop_signals(), asyncio.Event()
    serving = asyncio.create_task(_until(stop, chosen, started))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not started.is_set():  # an update of the agent alone may take two minutes
        await asyncio.wait({serving}, timeout=START_SECONDS)
        if not started.is_set():
            serving.cancel()
    stopping.cancel()
    if stop.is_set():
        _end_in_time()
    with contextlib.suppress(asyncio.CancelledError):
        await serving


def _end_in_time() -> None:
    """End as if killed if something does not end, such as a question to a database that is away. The next start goes
    on either way."""

    def end() -> None:
        console.say(f"Something did not end within {STOP_SECONDS:g} s. Forgehand ends without it.")
        os._exit(1)

    timer = threading.Timer(STOP_SECONDS, end)
    timer.daemon = True
    timer.start()


async def _until(stop: asyncio.Event, chosen: Settings, started: asyncio.Event) -> None:
    from bot import app

    async with app.running(chosen) as service:
        started.set()
        app.spare_the_collector()
        way = f"reads GitHub's log every {chosen.poll_seconds:g} s, and listens" if chosen.poll_seconds else "listens"
        console.say(f"Forgehand {way} on {service.url}; sandbox: {service.isolation}")
        await stop.wait()
        console.say("Stopping; running sessions go on when Forgehand starts again.")
