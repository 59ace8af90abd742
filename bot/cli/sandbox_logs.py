"""`forgehand sandbox logs`: the agent's output in a sandbox, as the store has it, and what is added while we look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from bot import settings
from bot.cli import console
from bot.cli.sandbox_access import opened, readable, turns_in
from bot.errors import UserError
from bot.models import TurnKey, TurnState

if TYPE_CHECKING:
    from bot.store.base import Store

PAGE = 1000
LOOK_SECONDS = 0.3


def command(
    sandbox: Annotated[str, typer.Argument(metavar="ID", help="As `sandbox list` shows it.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the turn has ended.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a row a line.")] = False,
    config: Annotated[Path | None, typer.Option(help="A file of NAME=value lines; the environment wins.")] = None,
) -> None:
    """Every line of the agent's output in it, in order; also when the sandbox itself is gone."""
    console.run(_print(config, sandbox, follow=follow, as_json=as_json))


async def _print(config: Path | None, sandbox: str, *, follow: bool, as_json: bool) -> None:
    async with readable(settings.data_dir(settings.from_environment(config))) as store:
        turns = await turns_in(store, sandbox)
        for turn in turns:
            assert store is not None
            async for row in _lines(store, turn.key, follow=follow):
                if as_json:
                    console.print_json(row)
                else:
                    typer.echo(row["text"])
    if not turns:
        await _say_why_not(config, sandbox)


async def _say_why_not(config: Path | None, sandbox: str) -> NoReturn:
    async with opened(config) as access:
        await access.row(sandbox)  # says so where there is no such sandbox
    raise UserError(f"No session has worked in {sandbox}.")


async def _lines(store: Store, key: TurnKey, *, follow: bool) -> AsyncIterator[dict[str, Any]]:
    from bot.store import events, sessions

    after = 0
    while True:
        # Asked before the lines: what was stored until then is read after.
        over = not follow or (await sessions.turn(store, key)).state is TurnState.DONE
        while page := await events.of_turn(store, key, after, PAGE):
            for row in page:
                yield {"seq": row.seq, "turn": key.n, "at": row.at, "kind": row.kind, "text": row.line}
            after = page[-1].seq
        if over:
            return
        await asyncio.sleep(LOOK_SECONDS)
