"""`forgehand doctor`: checks everything that a session needs, and says how to fix it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot import settings
from bot.cli import console
from bot.cli.asked import AsJson, Config

if TYPE_CHECKING:
    from bot.checkup import CheckupFinding

SIGNS = {"good": ("✓", "green"), "warning": ("!", "yellow"), "bad": ("✗", "red")}

SETUP = "Run `forgehand setup` to make a GitHub App, or set the settings named above."
RENAME = "Correct its name or remove it; docs/operator.md lists all names, under Settings."
AGAIN = "Follow the message, then run this again."


def command(
    as_json: AsJson = False,
    poll: Annotated[bool, typer.Option("--poll", help="Check for `serve --poll`.")] = False,
    config: Config = None,
) -> None:
    """Check settings, GitHub App, webhook, disk, database, sandbox, model key and more; exit code 1 if one is bad."""
    found = console.run(_examine(config, poll))
    if as_json:
        console.print_json([dataclasses.asdict(one) for one in found])
    else:
        for one in found:
            sign, colour = SIGNS[one.level]
            typer.echo(f"{typer.style(sign, fg=colour)} {one.name}: {one.words}")
            if one.fix:
                typer.echo(f"    → {one.fix}")
    if any(one.level == "bad" for one in found):
        raise typer.Exit(1)


async def _examine(config: Path | None, poll: bool) -> list[CheckupFinding]:
    from bot import checkup
    from bot.checkup.lines import bad, warning
    from bot.cli import start
    from bot.errors import SettingsError
    from bot.settings import names

    try:
        values = settings.from_environment(config)
    except SettingsError as error:
        return [bad("settings", str(error), AGAIN)]
    odd = [warning("settings", names.sentence(*one), RENAME) for one in names.mistyped(values).items()]
    try:
        return [*odd, *await checkup.examine(await start.chosen(values, poll=poll))]
    except SettingsError as error:
        found = await checkup.examine_folder(settings.data_dir(values), settings.read_database(values))
        sound = all(one.level != "bad" for one in found)
        no_app = sound and any(name in str(error) for name in start.APP_NAMES)
        return [*odd, *found, bad("settings", str(error), SETUP if no_app else AGAIN)]
