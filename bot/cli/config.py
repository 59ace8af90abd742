"""`forgehand config …`: checks a repository's `.github/forgehand.yml`, and prints the schema that editors use."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from bot.cli import console
from bot.errors import BadRepoConfig

app = typer.Typer(no_args_is_help=True, help="Check a repository's config file.")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def check(file: Path, as_json: AsJson = False) -> None:
    """Whether FILE can be used as `.github/forgehand.yml`, with the line of each mistake."""
    from bot import repo_config

    try:
        config = repo_config.parse(file.read_bytes())
    except OSError as error:
        console.fail(f"{file} cannot be read: {error.strerror}.")
    except BadRepoConfig as error:
        if as_json:
            console.print_json({"ok": False, "problem": str(error)})
        console.fail(str(error))
    if as_json:
        console.print_json({"ok": True, "config": dataclasses.asdict(config)})
        return
    typer.echo(f"{file} is fine.")
    for name, said in repo_config.in_words(config):
        typer.echo(f"  {name}: {said}")


@app.command()
def schema() -> None:
    """The JSON Schema of the file, as it is published in `forgehand.schema.json`."""
    from bot import repo_config

    typer.echo(json.dumps(repo_config.schema(), indent=2))
