"""What most commands take in the same words, and where the store is that they then read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot import settings
from bot.cli import console
from bot.errors import UserError
from bot.settings import Address

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="A file of NAME=value lines; the environment wins.")]


def database(config: Path | None) -> Address:
    return settings.read_database(settings.from_environment(config))


def data_dir(config: Path | None) -> Path:
    return settings.data_dir(settings.from_environment(config))


def values_for(path: Path, config: Path | None) -> dict[str, str]:
    """For a command that works on a folder; what stands in that folder is no setting unless `config` names it."""
    foreign = _root(path)
    if config is None and foreign is not None and settings.is_left_out(foreign):
        console.say(
            f"{Path.cwd() / '.env'} is not read, as it lies in the folder that is worked on; --config .env reads it."
        )
    return settings.from_environment(config, foreign=foreign)


def _root(path: Path) -> Path | None:
    """Of the work tree that the folder is in, or the folder; None where there is none, as will be said."""
    from bot.workbench import repository

    try:
        folder = path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    try:
        return repository.find(folder) or folder
    except (UserError, OSError):
        return folder
