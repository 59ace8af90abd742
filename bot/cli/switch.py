"""`forgehand pause` and `resume`: the operator's switch in the running service."""

from __future__ import annotations

from typing import Annotated

import typer

from bot.cli import service
from bot.cli.asked import AsJson, Config, database


def pause(
    stop: Annotated[bool, typer.Option("--stop", help="Also stop running turns, and keep their work.")] = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Start nothing new until `resume`, even after a restart. Requests wait in the queue and say so."""
    asking = service.ask(database(config), "pause", {"stop": "yes"} if stop else {})
    service.show_answer(asking, "done", as_json=as_json)


def resume(as_json: AsJson = False, config: Config = None) -> None:
    """Start the requests that wait."""
    service.show_answer(service.ask(database(config), "resume", {}), "done", as_json=as_json)
