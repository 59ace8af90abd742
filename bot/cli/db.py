"""`forgehand db …`: backs the store up, restores it, moves it to another database, and checks it."""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from bot import settings
from bot.cli import console
from bot.cli.asked import AsJson, Config, read_files
from bot.cli.shape import CommandGroup
from bot.errors import SettingsError
from bot.settings import Address, BucketSettings, database
from bot.settings import bucket as buckets

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.store.files import KeptFiles
    from bot.store.relocation import CopiedTable

app = CommandGroup(help="Back up, restore, move or check the store.")
FILE, STORE = "file", "store"
T = TypeVar("T")


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="A new file in an existing folder.")],
    config: Config = None,
) -> None:
    """Write a consistent copy of the store to TARGET. Keep it as private as the store."""
    from bot.store import operations

    async def work(store: Store, files: KeptFiles) -> str | None:
        await operations.backup(store, target)
        return files.beside

    beside = read_files(config, work)
    typer.echo(f"The store is copied to {target}.")
    if beside is not None:
        typer.echo(f"The copy does not contain the files in {beside}. Back them up as well.")


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="A file that `db backup` has written.")],
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Fill the store from BACKUP. The store must be empty or missing, and no service may run on it."""
    from bot.store import relocation

    values = settings.from_environment(config)
    folder, target = settings.data_dir(values), settings.read_database(values)
    copied, missing = _alone(folder, (source, target), relocation.restore(source, target, folder, _bucket(values)))
    if as_json:
        console.print_json({"tables": _digests(copied), "missing": missing})
        return
    _report(copied)
    for one in missing:
        typer.echo(one)


@app.command()
def migrate(
    to: Annotated[
        str, typer.Option(metavar="TARGET", help="postgresql://user@host/name or file; s3://bucket/prefix or store.")
    ],
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Move the store to PostgreSQL, or back to a file; or its files to a bucket, or back to the store. No service may
    run; the old store is closed afterwards.

    Put secrets into FORGEHAND_DATABASE_PASSWORD and FORGEHAND_FILES_SECRET or their _FILE, not into the URL: others see
    the command line."""
    values = settings.from_environment(config)
    file, on_server = database.in_folder(settings.data_dir(values)), database.is_set(values)
    if to.startswith("s3:") or to == STORE:
        _migrate_files(values, to, as_json=as_json)
    elif to == FILE:
        if not on_server:
            console.fail("The store is in a file already.")
        _move(values, settings.read_database(values), file, as_json=as_json)
    elif on_server:
        console.fail(f"The store is on PostgreSQL already. Use --to {FILE} to move it back first.")
    else:
        _move(values, file, _target(values, to), as_json=as_json)


def _target(values: dict[str, str], to: str) -> Address:
    if database.passwords_of(settings.Secret(to)):
        console.fail(f"The URL holds a password, which others see. Put it into {database.PASSWORD} or its _FILE.")
    try:
        return settings.read_database({**values, database.NAME: to})
    except SettingsError as error:
        console.fail(str(error).replace(database.NAME, "--to"))


def _move(values: dict[str, str], source: Address, target: Address, *, as_json: bool) -> None:
    from bot.store import base, relocation

    folder, bucket = settings.data_dir(values), _bucket(values)
    copied, files = _alone(folder, (source, target), relocation.move(source, target, folder, bucket))
    if as_json:
        console.print_json({"tables": _digests(copied), "files": files})
        return
    _report(copied)
    on_server = base.place(target).is_remote
    where = f"in the bucket {bucket.name}" if bucket else "beside them" if on_server else "in the data directory"
    typer.echo(f"{files} files are {where} now.")
    typer.echo(f"{'Set' if on_server else 'Unset'} {database.NAME} before the next start.")


def _migrate_files(values: dict[str, str], to: str, *, as_json: bool) -> None:
    from bot.store import base, relocation

    in_bucket = bool(values.get(buckets.NAME, "").strip())
    if in_bucket == (to != STORE):
        console.fail(
            f"The files are in a bucket already. Use --to {STORE} first." if in_bucket else "There is no bucket."
        )
    folder, where = settings.data_dir(values), settings.read_database(values)
    source, target = (_bucket(values), None) if in_bucket else (None, _bucket({**values, buckets.NAME: to}))
    files = _alone(folder, (where,), relocation.move_files(where, folder, source, target))
    if as_json:
        console.print_json({"files": files})
        return
    home = "beside the rows" if base.place(where).is_remote else "in the data directory"
    typer.echo(f"{files} files are {f'in the bucket {target.name}' if target else home} now.")
    typer.echo(f"{'Set' if target else 'Unset'} {buckets.NAME} before the next start.")


def _bucket(values: dict[str, str]) -> BucketSettings | None:
    try:
        return settings.read_bucket(values)
    except SettingsError as error:
        console.fail(str(error))


def _alone(folder: Path, stores: tuple[Address, ...], work: Coroutine[Any, Any, T]) -> T:
    """Do the work while no service runs on the data directory or a store."""
    from bot.store import base
    from bot.store.data_directory import DataDirLock

    async def locked() -> T:
        with ExitStack() as stack:
            stack.callback(work.close)
            stack.enter_context(DataDirLock(folder))
            for store in stores:
                stack.enter_context(base.place(store).unused())
            return await work

    return console.run(locked())


def _digests(copied: list[CopiedTable]) -> dict[str, dict[str, Any]]:
    return {one.name: {"rows": one.rows, "sha256": one.sha256} for one in copied}


def _report(copied: list[CopiedTable]) -> None:
    rows = sum(one.rows for one in copied)
    typer.echo(f"{rows} rows of {len(copied)} tables arrived, and both ends have the same digests.")


@app.command()
def check(as_json: AsJson = False, config: Config = None) -> None:
    """Check the store and its files; the exit code is 1 if something is damaged or missing."""
    from bot.store import operations

    problems = read_files(config, operations.check)
    if as_json:
        console.print_json({"sound": not problems, "problems": problems})
    else:
        typer.echo("\n".join(problems) or "The store is sound.")
    if problems:
        raise typer.Exit(1)
