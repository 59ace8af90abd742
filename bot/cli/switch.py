"""`forgehand pause` and `resume`: the operator's switch, thrown in the running service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bot.cli import console, service
from bot.cli.asked import AsJson, Config, database


def pause(
    stop: Annotated[bool, typer.Option("--stop", help="End what runs too; its work so far is kept.")] = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Begin nothing new until `resume`: requests wait in the queue and say so. It outlives a restart."""
    _throw("pause", {"stop": "yes"} if stop else {}, as_json, config)


def resume(as_json: AsJson = False, config: Config = None) -> None:
    """Take up again what waits."""
    _throw("resume", {}, as_json, config)


def _throw(kind: str, body: dict[str, str], as_json: bool, config: Path | None) -> None:
    done, answer = console.run(service.ask(database(config), kind, body))
    if as_json:
        console.print_json({"done": done, "message": answer})
    elif done:
        typer.echo(answer)
    if not done:
        console.fail(answer)
