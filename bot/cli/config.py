"""`forgehand config …`: checks a repository's `.github/forgehand.yml`, its schema, and what counts for an account."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from bot import settings
from bot.cli import console
from bot.cli.asked import AsJson, Config
from bot.cli.shape import CommandGroup
from bot.errors import BadRepoConfig

app = CommandGroup(help="Check a repository's config file; show an account's limits.")


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="It need not have that name.")], as_json: AsJson = False
) -> None:
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


@app.command()
def show(
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Its name, or the number of its installation.")],
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """The limits and default triggers that count for ACCOUNT, each with where it comes from."""
    rows = console.run(_counting(config, account))
    if as_json:
        console.print_json(rows)
        return
    for row in rows:
        typer.echo(f"{row['title']}: {row['words']} ({row['source']})")


async def _counting(config: Path | None, account: str) -> list[dict[str, Any]]:
    from bot import account_settings
    from bot.cli.vault_access import installation_of
    from bot.store import accounts
    from bot.store.base import Store

    values = settings.from_environment(config)
    async with Store.reading(settings.read_database(values)) as store:
        own = await accounts.settings_of(store, (await installation_of(store, account))[0])
    return account_settings.listed(settings.read_limits(values), own)
