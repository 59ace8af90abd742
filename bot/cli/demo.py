"""`forgehand demo`: a whole session without an account, to watch in a browser or to print as one object."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot import settings
from bot.cli import console
from bot.models import Outcome


def command(
    headless: Annotated[bool, typer.Option("--headless", help="Run once without a browser, then end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object (with --headless).")] = False,
    port: Annotated[int, typer.Option(help="Where the page listens on 127.0.0.1; 0: any free port.")] = 8787,
) -> None:
    """Watch a real session on a simulated GitHub: no account, no key, no network."""
    folder = settings.data_dir(settings.from_environment()) / "demo"
    if headless:
        console.run(_headless(folder, as_json))
    else:
        console.run(_watched(folder, port))


async def _headless(folder: Path, as_json: bool) -> None:
    from bot.cli import demo_world

    async with demo_world.telling(folder, 0, paced=False, sweeping=True) as story:
        outcome = await story.tell()
        found = {
            "outcome": outcome.value,
            "pull_request": f"{story.github.url}/{story.repo.full_name}/pull/{story.pull.number}"
            if story.pull
            else None,
            "branch": story.pull.head if story.pull else None,
            "tests_passed": await story.tests_pass(),
            "seconds": story.seconds,
            "edits": len(story.live.history) - 1 if story.live else 0,
            "credentials_found": story.credentials_found(),
            "isolation": story.isolation,
            "simulated": demo_world.SIMULATED,
        }
    if as_json:
        console.print_json(found)
    else:
        for name, value in found.items():
            typer.echo(f"{name}: {value}")
    if outcome is not Outcome.PULL_REQUEST or not found["tests_passed"] or found["credentials_found"]:
        raise typer.Exit(1)


async def _watched(folder: Path, port: int) -> None:
    from bot.cli import demo_world

    stop = console.stop_signals()
    console.say("Starting a simulated GitHub, a scripted model, and Forgehand …")
    async with demo_world.telling(folder, port, paced=True, sweeping=False) as story:
        console.say(f"\n  Watch it here:  {story.url}\n")
        console.say(f"Simulated: {'; '.join(demo_world.SIMULATED)}.")
        console.say(f"Real: Forgehand, its gateway, git, the Claude Code CLI; sandbox: {story.isolation}.")
        outcome = await story.tell()
        took = story.seconds["final"]
        console.say(f"\nThe session ended after {took:.0f} s: {outcome.value.replace('_', ' ')}.")
        if story.pull_url:
            console.say(f"The pull request: {story.pull_url}")
        console.say("Comment on the page to go on. Ctrl-C ends the demo.")
        await stop.wait()
