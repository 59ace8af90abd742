"""`forgehand config …`: checks a repository's `.github/forgehand.yml`, prints its schema, shows account settings."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot import settings
from bot.cli import console
from bot.cli.asked import AsJson, Config
from bot.cli.shape import CommandGroup
from bot.errors import BadRepoConfig

if TYPE_CHECKING:
    from bot.repo_config import RepoConfig

app = CommandGroup(help="Check a repository's config file; show an account's limits.")


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="It may have any name.")],
    inside: Annotated[
        str | None, typer.Option("--in", metavar="PATH", help="Show what counts for work on this file or folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check FILE as a `.github/forgehand.yml`, and name the line of each mistake."""
    from bot import repo_config

    config = _parsed(file, as_json=as_json)
    if inside is not None:
        from bot.sessions import folders

        place = inside.strip("/")
        config = config.with_paths(folders.patterns_for(config, [place, f"{place}/{folders.ANYTHING}"]))
    if as_json:
        console.print_json({"ok": True, "config": dataclasses.asdict(config)})
        return
    typer.echo(f"{file} is fine.")
    for name, said in repo_config.in_words(config):
        typer.echo(f"  {name}: {said}")


def _parsed(file: Path, *, as_json: bool) -> RepoConfig:
    from bot import repo_config

    try:
        return repo_config.parse(file.read_bytes())
    except OSError as error:
        console.fail(f"{file} cannot be read: {error.strerror}.")
    except BadRepoConfig as error:
        if as_json:
            console.print_json({"ok": False, "problem": str(error)})
        console.fail(str(error))


@app.command("try")
def try_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A config, as for `config check`.")],
    repo: Annotated[str, typer.Option(metavar="OWNER/NAME", help="The repository whose past counts.")],
    days: Annotated[int, typer.Option(metavar="N", min=1, max=365, help="How many days back.")] = 7,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Say what the triggers of FILE could have started lately in a repository, and what that would have cost."""
    from bot.cli import config_try

    _parsed(file, as_json=as_json)
    config_try.show(config, file.read_bytes(), repo, days, as_json=as_json)


@app.command()
def init(
    path: Annotated[Path, typer.Option(metavar="FOLDER", help="The root of a repository's files.")] = Path(),
) -> None:
    """Print a `.github/forgehand.yml` with the commands that the files name. Runs none of them."""
    from bot.cli import surveyed

    try:
        typer.echo(surveyed.proposal(path), nl=False)
    except OSError as error:
        console.fail(f"{path} cannot be read: {error.strerror}.")


@app.command()
def schema() -> None:
    """Print the JSON Schema of the file, as in `forgehand.schema.json`."""
    from bot import repo_config

    typer.echo(json.dumps(repo_config.schema(), indent=2))


@app.command()
def show(
    account: Annotated[
        str, typer.Argument(metavar="ACCOUNT", help="Its name, or the number of its installation; or OWNER/NAME.")
    ],
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Show the limits and defaults of ACCOUNT, or all values of a repository OWNER/NAME, and where each one stands."""
    from bot.cli import config_show

    limits = settings.read_limits(settings.from_environment(config))
    show = config_show.of_repository if "/" in account else config_show.of_account
    show(config, account, limits, as_json=as_json)
