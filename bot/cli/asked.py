"""What most commands take in the same words, and where the store is that they then read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot import settings

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="A file of NAME=value lines; the environment wins.")]


def database(config: Path | None) -> Path:
    return settings.data_dir(settings.from_environment(config)) / "state.db"
