"""`forgehand demo`: a whole session without an account, in a browser or printed as one object."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot import settings
from bot.cli import console

if TYPE_CHECKING:
    from bot.cli.demo_story import Story

WAIT_FOR_WATCHER_SECONDS = 15.0
Scenario = StrEnum(
    "Scenario",
    ["FIX", "ASK", "PLAN", "STEER", "STOP", "UNDO", "REVIEW", "FINDINGS", "DASHBOARD", "PACKAGES", "MCP", "CRASH"],
)


def command(
    scenario: Annotated[
        Scenario | None,
        typer.Option(
            metavar="NAME", help=f"The story: {', '.join(Scenario)}. Default: fix, or crash with several replicas."
        ),
    ] = None,
    replicas: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=5, help="How many replicas share a throw-away PostgreSQL database."),
    ] = 1,
    headless: Annotated[bool, typer.Option("--headless", help="Run once without a browser, then end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; implies --headless.")] = False,
    port: Annotated[
        int,
        typer.Option(metavar="PORT", min=0, max=65535, help="The page's port on 127.0.0.1; 0: any free one."),
    ] = 8787,
) -> None:
    """Watch a real session on a simulated GitHub: no account, no key, no network."""
    chosen = scenario or (Scenario.CRASH if replicas > 1 else Scenario.FIX)
    if headless or as_json:
        console.run(_headless(chosen, replicas, as_json))
    else:
        console.run(_watched(chosen, replicas, port))


def _root() -> Path:
    return settings.data_dir(settings.from_environment(foreign=Path.cwd())) / "demo"


async def _headless(scenario: Scenario, replicas: int, as_json: bool) -> None:
    from bot.cli import demo_world
    from bot.simulation.scenarios.plays import PLAYS

    console.require_git()
    async with demo_world.telling(_root(), 0, PLAYS[scenario], watched=False, replicas=replicas) as story:
        await story.begin()
        await story.end()
        found = await _found(story)
    if as_json:
        console.print_json(found)
    else:
        for name, value in found.items():
            typer.echo(f"{name}: {value}")
    if not found["as_expected"]:
        raise typer.Exit(1)


async def _found(story: Story) -> dict[str, Any]:
    from bot.cli.demo_world import SIMULATED

    tests_passed, credentials = await story.tests_pass(), await story.credentials_found()
    as_played = (tuple(story.outcomes), tests_passed) == (story.play.outcomes, story.play.tests_pass)
    return {
        "scenario": story.play.name,
        "as_expected": as_played and not credentials,
        "outcome": story.outcomes[-1].value,
        "outcomes": [one.value for one in story.outcomes],
        "pull_request": story.pull_url,
        "dashboard": story.dashboard_url,
        "branch": story.pull.head if story.pull else None,
        "tests_passed": tests_passed,
        "verified": story.verified,
        "seconds": story.seconds,
        "edits": len(story.live[0].history) - 1,
        **story.service.told(),
        "credentials_found": credentials,
        "isolation": story.service.isolation,
        "simulated": SIMULATED,
    }


async def _watched(scenario: Scenario, replicas: int, port: int) -> None:
    from bot.cli import demo_world
    from bot.simulation.scenarios.plays import PLAYS

    console.require_git()
    stop = console.stop_signals()
    what = "Forgehand" if replicas == 1 else f"PostgreSQL with {replicas} replicas of Forgehand"
    console.say(f"Starting a simulated GitHub, a scripted model, and {what} …")
    async with demo_world.telling(_root(), port, PLAYS[scenario], watched=True, replicas=replicas) as story:
        console.say(f"\n  Watch it here:  {story.url}\n")
        console.say(f"Simulated: {'; '.join(demo_world.SIMULATED)}.")
        console.say(f"Real: {what}, its gateway, git, the Claude Code CLI; sandbox: {story.service.isolation}.")
        console.say(f"It begins when you open the page, or in {WAIT_FOR_WATCHER_SECONDS:.0f} s. Ctrl-C ends it.")
        await _until(story.watched.wait(), stop, WAIT_FOR_WATCHER_SECONDS)
        if await _until(_tell(story), stop):
            await stop.wait()
            return
    console.say("The demo has stopped, and nothing of it is running any more.")
    raise typer.Exit(130)


async def _tell(story: Story) -> None:
    await story.begin()
    outcome = story.outcomes[0].value.replace("_", " ")
    console.say(f"\nThe turn ended after {story.seconds['final']:.0f} s: {outcome}.")
    for sentence in story.service.happened:
        console.say(sentence)
    if story.pull_url:
        console.say(f"The pull request: {story.pull_url}")
        for line in story.verified:
            console.say(f"Verified in a fresh sandbox: {line}")
    console.say(f"{story.play.hint or 'Comment on the page, or press its buttons, to go on'}. Ctrl-C ends the demo.")


async def _until(work: Coroutine[Any, Any, object], stop: asyncio.Event, timeout: float | None = None) -> bool:
    """Run the work; return False if `stop` or the timeout came first."""
    ending, working = asyncio.create_task(stop.wait()), asyncio.create_task(work)
    await asyncio.wait((ending, working), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    done = working.done()
    if not done:
        working.cancel()
    ending.cancel()
    await asyncio.gather(ending, working, return_exceptions=True)
    if done:
        working.result()  # raises the work's error
    return done
