"""`forgehand config …`: checks a repository's `.github/forgehand.yml`, prints its schema, shows account settings."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot import settings
from bot.cli import console
from bot.cli.asked import AsJson, Config, read_store
from bot.cli.shape import CommandGroup
from bot.cli.table import Column, print_table
from bot.errors import BadRepoConfig

if TYPE_CHECKING:
    from bot.store.base import Store

app = CommandGroup(help="Check a repository's config file; show an account's limits.")


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="It may have any name.")], as_json: AsJson = False
) -> None:
    """Check FILE as a `.github/forgehand.yml`, and name the line of each mistake."""
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
    """Print the JSON Schema of the file, as in `forgehand.schema.json`."""
    from bot import repo_config

    typer.echo(json.dumps(repo_config.schema(), indent=2))


@app.command()
def show(
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Its name, or the number of its installation.")],
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Show the limits and default triggers of ACCOUNT, and who set each one."""
    from bot import account_settings
    from bot.cli.vault_access import installation_of
    from bot.store import accounts

    async def look(store: Store) -> list[dict[str, Any]]:
        limits = settings.read_limits(settings.from_environment(config))
        choices = await accounts.settings_of(store, (await installation_of(store, account))[0])
        return account_settings.listed(limits, choices)

    rows = read_store(config, look)
    print_table(rows, COLUMNS, as_json=as_json)


COLUMNS = (
    Column("SETTING", lambda row: row["title"]),
    Column("VALUE", lambda row: row["words"]),
    Column("SET BY", lambda row: row["source"]),
)
