"""`forgehand demo`: a whole session without an account, to watch in a browser or to print as one object."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot import settings
from bot.cli import console
from bot.models import Outcome

if TYPE_CHECKING:
    from bot.cli.demo_world import Story


WAIT_FOR_WATCHER_SECONDS = 15.0


def command(
    headless: Annotated[bool, typer.Option("--headless", help="Run once without a browser, then end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; implies --headless.")] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where the page listens on 127.0.0.1; 0: any free port.")
    ] = 8787,
) -> None:
    """Watch a real session on a simulated GitHub: no account, no key, no network."""
    console.run(_headless(as_json) if headless or as_json else _watched(port))


def _root() -> Path:
    return settings.data_dir(settings.from_environment()) / "demo"


async def _headless(as_json: bool) -> None:
    from bot.cli import demo_world

    console.require_git()
    async with demo_world.telling(_root(), 0, paced=False, sweeping=True) as story:
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


async def _watched(port: int) -> None:
    from bot.cli import demo_world

    console.require_git()
    stop = console.stop_signals()
    console.say("Starting a simulated GitHub, a scripted model, and Forgehand …")
    async with demo_world.telling(_root(), port, paced=True, sweeping=False) as story:
        console.say(f"\n  Watch it here:  {story.url}\n")
        console.say(f"Simulated: {'; '.join(demo_world.SIMULATED)}.")
        console.say(f"Real: Forgehand, its gateway, git, the Claude Code CLI; sandbox: {story.isolation}.")
        console.say(f"It begins when you open the page, or in {WAIT_FOR_WATCHER_SECONDS:.0f} s. Ctrl-C ends it.")
        await _until(story.watched.wait(), stop, WAIT_FOR_WATCHER_SECONDS)
        if await _until(_tell(story), stop):
            await stop.wait()
            return
    console.say("Ended in the middle; nothing of it runs on.")
    raise typer.Exit(130)


async def _tell(story: Story) -> None:
    outcome = await story.tell()
    console.say(f"\nThe session ended after {story.seconds['final']:.0f} s: {outcome.value.replace('_', ' ')}.")
    if story.pull_url:
        console.say(f"The pull request: {story.pull_url}")
    console.say("Comment on the page to go on. Ctrl-C ends the demo.")


async def _until(work: Coroutine[Any, Any, object], stop: asyncio.Event, timeout: float | None = None) -> bool:
    """Whether the work came to its end before it was told to stop, or before its time was up."""
    ending, working = asyncio.create_task(stop.wait()), asyncio.create_task(work)
    await asyncio.wait((ending, working), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    done = working.done()
    if not done:
        working.cancel()
    ending.cancel()
    await asyncio.gather(ending, working, return_exceptions=True)
    if done:
        working.result()  # what it raised is the caller's
    return done
