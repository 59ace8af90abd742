"""`forgehand db …`: backs the store up and checks it, while the service may run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.cli import console
from bot.cli.asked import AsJson, Config, read_store
from bot.cli.shape import CommandGroup

app = CommandGroup(help="Back up the store, or check it.")


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="A new file in an existing folder.")],
    config: Config = None,
) -> None:
    """Write a consistent copy of the store to TARGET. Keep it as private as the store."""
    from bot.store import operations

    read_store(config, lambda store: operations.backup(store, target))
    typer.echo(f"The store is copied to {target}.")


@app.command()
def check(as_json: AsJson = False, config: Config = None) -> None:
    """Check the store's file; the exit code is 1 if it is damaged."""
    from bot.store import operations

    problems = read_store(config, operations.check)
    if as_json:
        console.print_json({"sound": not problems, "problems": problems})
    else:
        typer.echo("\n".join(problems) or "The store is sound.")
    if problems:
        raise typer.Exit(1)
