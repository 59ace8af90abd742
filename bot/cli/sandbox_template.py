"""`forgehand sandbox template …`: the image from which E2B's sandboxes are made."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot import settings
from bot.cli import console
from bot.cli.asked import AsJson, Config
from bot.cli.shape import CommandGroup
from bot.errors import UserError

if TYPE_CHECKING:
    from sandbox.template import Built

app = CommandGroup(help="Build the template that E2B's sandboxes are made from.")


@app.command()
def build(
    claude: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION", help="Claude Code's version, or latest; by default as FORGEHAND_CLAUDE_VERSION says."
        ),
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Build it in your E2B account under the configured name; the first time takes some minutes."""
    built = console.run(_build(config, claude))
    if as_json:
        console.print_json(dataclasses.asdict(built))
    else:
        typer.echo(f"The template {built.name} is ready ({built.template_id}, build {built.build_id}).")


async def _build(config: Path | None, claude: str | None) -> Built:
    values = settings.from_environment(config)
    e2b = settings.read_e2b(values)
    if e2b is None:
        raise UserError("Sandboxes on this host need no template. For E2B's, set FORGEHAND_SANDBOX=e2b first.")
    from sandbox import template

    usual = template.LATEST if settings.read_newest_agent(values) else template.CLAUDE_CODE
    return await template.build(e2b, claude=claude or usual, on_log=console.say)


@app.callback()
def _group() -> None:
    """Keep the name of the only command: without this, typer would leave it out."""
