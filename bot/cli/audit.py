"""`forgehand audit`: who allowed, refused, set or took back what, and when."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import console
from bot.cli.asked import AsJson, Config, database
from bot.settings import Address

if TYPE_CHECKING:
    from bot.store.audit import AuditEntry

Limit = Annotated[int, typer.Option(metavar="N", min=1, max=100_000, help="So many of the latest.")]


def command(limit: Limit = 100, as_json: AsJson = False, config: Config = None) -> None:
    """Who allowed, refused, set or took back what, newest first: answers, keys, settings, pauses, installations."""
    found = console.run(_read(database(config), limit))
    if as_json:
        console.print_json([dataclasses.asdict(one) for one in found])
        return
    if not found:
        typer.echo("Nothing was done yet that is noted here.")
    for one in found:
        typer.echo(_line(one))


def _line(one: AuditEntry) -> str:
    """Names and details come from people: in the terminal it is text, on one line."""
    from bot.text.blocks import plain

    at = datetime.fromtimestamp(one.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    detail = f" ({one.detail})" if one.detail else ""
    said = " ".join(f"{one.action}: {one.subject}{detail}".split())
    return plain(f"{at}  {one.actor}  {said}")


async def _read(where: Address, limit: int) -> list[AuditEntry]:
    from bot.store import audit
    from bot.store.base import Store

    async with Store.reading(where) as store:
        return await audit.listing(store, limit)
