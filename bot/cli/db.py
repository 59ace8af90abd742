"""`forgehand db …`: a backup of the store, and whether it is sound; both beside the running service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.cli import console
from bot.cli.asked import AsJson, Config, database
from bot.cli.shape import CommandGroup
from bot.settings import Address

app = CommandGroup(help="Back the store up, or check it.")


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="A new file, in a folder that is there.")],
    config: Config = None,
) -> None:
    """Write a consistent copy to TARGET, which must not exist. It holds what the store holds: keep it private."""
    console.run(_backup(database(config), target))
    typer.echo(f"The store is copied to {target}.")


async def _backup(where: Address, target: Path) -> None:
    from bot.store import operations
    from bot.store.base import Store

    async with Store.reading(where) as store:
        await operations.backup(store, target)


@app.command()
def check(as_json: AsJson = False, config: Config = None) -> None:
    """Say what is wrong with the store's file; exit code 1 when something is."""
    problems = console.run(_check(database(config)))
    if as_json:
        console.print_json({"sound": not problems, "problems": problems})
    else:
        typer.echo("\n".join(problems) or "The store is sound.")
    if problems:
        raise typer.Exit(1)


async def _check(where: Address) -> list[str]:
    from bot.store import operations
    from bot.store.base import Store

    async with Store.reading(where) as store:
        return await operations.check(store)
