"""The options of most commands, and the way to the settings and the store that they name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bot import settings
from bot.cli import console
from bot.errors import SettingsError, UserError
from bot.settings import Address

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.store.files import KeptFiles

T = TypeVar("T")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="A file of NAME=value lines; the environment wins.")]


def database(config: Path | None) -> Address:
    try:
        return settings.read_database(settings.from_environment(config))
    except SettingsError as error:
        console.fail(str(error))


def read_files(config: Path | None, look: Callable[[Store, KeptFiles], Awaitable[T]]) -> T:
    """Return what `look` finds in the store and among the files that the service has kept."""
    from bot.store.files import KeptFiles

    values = settings.from_environment(config)

    async def looked(store: Store) -> T:
        async with KeptFiles.opened(store, settings.data_dir(values), settings.read_bucket(values)) as files:
            return await look(store, files)

    return read_store(config, looked)


def read_store(config: Path | None, look: Callable[[Store], Awaitable[T]]) -> T:
    """Return what `look` finds in the store. A service may run at the same time."""
    from bot.store.base import Store

    async def looked() -> T:
        async with Store.reading(database(config)) as store:
            return await look(store)

    return console.run(looked())


def values_for(path: Path, config: Path | None) -> dict[str, str]:
    """Read the settings of a command that works on a folder; a `.env` in that folder counts only as `config`."""
    foreign = _root(path)
    if config is None and foreign is not None and settings.is_left_out(foreign):
        console.say(
            f"{Path.cwd() / '.env'} is not read, because it is in the folder that the agent works on. Use --config "
            ".env to read it."
        )
    return settings.from_environment(config, foreign=foreign)


def _root(path: Path) -> Path | None:
    """Return the root of the work tree around the folder, or the folder; None if it does not exist."""
    from bot.workbench import repository

    try:
        folder = path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    try:
        return repository.find(folder) or folder
    except (UserError, OSError):
        return folder
