"""`forgehand setup`: serves the page that makes the GitHub App; the terminal shows the token that opens it."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

import typer

from bot import settings
from bot.cli import console, first_answer
from bot.cli.asked import Config

FIRST_COMMENT = Annotated[
    bool, typer.Option("--first-comment/--no-first-comment", help="At the end, run until a comment was answered.")
]


def command(first_comment: FIRST_COMMENT = True, config: Config = None) -> None:
    """Make the GitHub App (or use an existing one), store its secrets encrypted, and check that everything works."""

    async def guided() -> bool:
        values, stop = settings.from_environment(config), console.stop_signals()
        if not await guide(values, stop):
            return False
        if first_comment and not await first_answer.seen(values, stop):
            console.say("Nobody waits for the first answer any more.")
        return True

    if not console.run(guided()):
        raise typer.Exit(130)
    typer.echo("Everything is stored. Start Forgehand with: forgehand serve")


async def guide(values: Mapping[str, str], stop: asyncio.Event) -> bool:
    """Serve the page; return False if someone stopped it before the end."""
    from bot.setup import serving

    async with serving(values) as page:
        if page.made_key:
            console.say(f"\nMade the key that encrypts Forgehand's secrets: {page.made_key}")
            console.say("Keep a copy in a safe place, apart from backups: without it nobody can read the secrets.")
        console.say(f"\n  Open it here:   {page.url}/setup")
        console.say(f"  with the token: {page.token}\n")
        if line := tunnel(values, page.url):
            console.say(f"You are here over SSH. Run this on your own machine first, and keep it open:\n\n  {line}\n")
        console.say("The token opens the page once, in one browser. Ctrl-C ends set-up; stored secrets stay.")
        waiting = [asyncio.create_task(one.wait()) for one in (stop, page.finished)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        return page.finished.is_set()


def tunnel(values: Mapping[str, str], url: str) -> str:
    """Return the command that brings the page to the machine from which somebody came over SSH; empty: nobody did."""
    parts = values.get("SSH_CONNECTION", "").split()
    if len(parts) != 4 or not parts[3].isdecimal():
        return ""
    _, _, host, ssh_port = parts
    place = urlsplit(url)
    there = f"[{place.hostname}]" if ":" in (place.hostname or "") else place.hostname
    way = "" if ssh_port == "22" else f"-p {ssh_port} "
    return f"ssh -N {way}-L {place.port}:{there}:{place.port} {values.get('USER') or getpass.getuser()}@{host}"
