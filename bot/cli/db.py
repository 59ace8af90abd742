"""`forgehand db …`: a backup of the store, and whether it is sound; both beside the running service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot import settings
from bot.cli import console

app = typer.Typer(no_args_is_help=True, help="Back the store up, or check it.")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Config = Annotated[Path | None, typer.Option(help="A file of NAME=value lines; the environment wins.")]


def _database(config: Path | None) -> Path:
    return settings.data_dir(settings.from_environment(config)) / "state.db"


@app.command()
def backup(target: Path, config: Config = None) -> None:
    """Write a consistent copy to TARGET, which must not exist. It holds what the store holds: keep it private."""
    console.run(_backup(_database(config), target))
    typer.echo(f"The store is copied to {target}.")


async def _backup(path: Path, target: Path) -> None:
    from bot.store import upkeep
    from bot.store.base import Store

    store = await Store.open_reader(path)
    try:
        await upkeep.backup(store, target)
    finally:
        await store.close()


@app.command()
def check(as_json: AsJson = False, config: Config = None) -> None:
    """Say what is wrong with the store's file; exit code 1 when something is."""
    problems = console.run(_check(_database(config)))
    if as_json:
        console.print_json({"sound": not problems, "problems": problems})
    else:
        typer.echo("\n".join(problems) or "The store is sound.")
    if problems:
        raise typer.Exit(1)


async def _check(path: Path) -> list[str]:
    from bot.store import upkeep
    from bot.store.base import Store

    store = await Store.open_reader(path)
    try:
        return await upkeep.check(store)
    finally:
        await store.close()
