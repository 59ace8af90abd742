"""`forgehand sandbox logs`: the agent's output in a sandbox, as stored; `--follow` waits for more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.cli import console, logs
from bot.cli.asked import Config, database
from bot.cli.sandbox_access import opened, readable
from bot.errors import UserError


def command(
    sandbox: Annotated[str, typer.Argument(metavar="ID", help="As `sandbox list` shows it.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the turn ends.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one row for each original line.")] = False,
    config: Config = None,
) -> None:
    """Print what the agent said and did in a sandbox, even if it is gone."""
    console.run(_print(config, sandbox, follow=follow, as_json=as_json))


async def _print(config: Path | None, sandbox: str, *, follow: bool, as_json: bool) -> None:
    from bot.store import environments

    async with readable(database(config)) as store:
        turns = await environments.turns_in(store, sandbox) if store else []
        for key in turns:
            assert store is not None
            await logs.print_turn(store, key, as_json=as_json, follow=follow)
    if not turns:
        async with opened(config) as access:
            await access.row(sandbox)  # raises if there is no such sandbox
        raise UserError(f"No session has worked in {sandbox}.")
