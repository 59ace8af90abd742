"""`forgehand db …`: backs the store up, restores it, moves it to another database, and checks it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot import settings
from bot.cli import console
from bot.cli.asked import AsJson, Config, read_store
from bot.cli.shape import CommandGroup
from bot.errors import SettingsError
from bot.settings import Address, database

if TYPE_CHECKING:
    from bot.store.relocation import CopiedTable

app = CommandGroup(help="Back up, restore, move or check the store.")
FILE = "file"


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
def restore(
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="A file that `db backup` has written.")],
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Fill the store from BACKUP. The store must be empty or missing, and no service may run on it."""
    values = settings.from_environment(config)
    _relocate(values, source, settings.read_database(values), moves=False, as_json=as_json)


@app.command()
def migrate(
    to: Annotated[str, typer.Option(metavar="URL|file", help="postgresql://user@host/name, or `file` to go back.")],
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Move the store to PostgreSQL, or back to a file. No service may run; the old store is closed afterwards.

    Put the password into FORGEHAND_DATABASE_PASSWORD or its _FILE, not into the URL: others see the command line."""
    values = settings.from_environment(config)
    file, on_server = database.in_folder(settings.data_dir(values)), database.is_set(values)
    if to == FILE:
        if not on_server:
            console.fail("The store is in a file already.")
        _relocate(values, settings.read_database(values), file, moves=True, as_json=as_json)
    elif on_server:
        console.fail(f"The store is on PostgreSQL already. Use --to {FILE} to move it back first.")
    else:
        _relocate(values, file, _target(values, to), moves=True, as_json=as_json)


def _target(values: dict[str, str], to: str) -> Address:
    if database.passwords_of(settings.Secret(to)):
        console.fail(f"The URL holds a password, which others see. Put it into {database.PASSWORD} or its _FILE.")
    try:
        return settings.read_database({**values, database.NAME: to})
    except SettingsError as error:
        console.fail(str(error).replace(database.NAME, "--to"))


def _relocate(values: dict[str, str], source: Address, target: Address, *, moves: bool, as_json: bool) -> None:
    from bot.store import base, relocation
    from bot.store.data_directory import DataDirLock

    folder = settings.data_dir(values)

    async def work() -> tuple[list[CopiedTable], int]:
        with DataDirLock(folder), base.unused(source), base.unused(target):
            if moves:
                return await relocation.move(source, target, folder)
            return await asyncio.to_thread(relocation.copy, source, target), 0

    copied, files = console.run(work())
    if as_json:
        tables = {one.name: {"rows": one.rows, "sha256": one.sha256} for one in copied}
        console.print_json({"tables": tables, "files": files})
        return
    rows = sum(one.rows for one in copied)
    typer.echo(f"{rows} rows of {len(copied)} tables arrived, and both ends have the same digests.")
    if moves:
        where = "in" if isinstance(target, Path) else "beside"
        typer.echo(f"{files} files are {where} {'the data directory' if where == 'in' else 'them'} now.")
        typer.echo(f"{'Unset' if where == 'in' else 'Set'} {database.NAME} before the next start.")


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
