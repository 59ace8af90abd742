"""`forgehand sandbox logs`: the agent's output in a sandbox, as the store has it, and what is added while we look."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from bot.cli import console, logs
from bot.cli.asked import Config, database
from bot.cli.sandbox_access import opened, readable, turns_in
from bot.errors import UserError


def command(
    sandbox: Annotated[str, typer.Argument(metavar="ID", help="As `sandbox list` shows it.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the turn has ended.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, one row for each line of its output as it is.")
    ] = False,
    config: Config = None,
) -> None:
    """What the agent said and did in it, in order; also when the sandbox itself is gone."""
    console.run(_print(config, sandbox, follow=follow, as_json=as_json))


async def _print(config: Path | None, sandbox: str, *, follow: bool, as_json: bool) -> None:
    async with readable(database(config)) as store:
        turns = await turns_in(store, sandbox)
        for turn in turns:
            assert store is not None
            await logs.print_turn(store, turn.key, as_json=as_json, follow=follow)
    if not turns:
        await _say_why_not(config, sandbox)


async def _say_why_not(config: Path | None, sandbox: str) -> NoReturn:
    async with opened(config) as access:
        await access.row(sandbox)  # says so where there is no such sandbox
    raise UserError(f"No session has worked in {sandbox}.")
