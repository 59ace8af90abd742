"""`forgehand deliveries …`: what became of each webhook and why, and a way to replay one."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot import settings
from bot.cli import console, delivery_file, service
from bot.cli.asked import AsJson, Config, database, read_store
from bot.cli.delivery_file import Read
from bot.cli.filters import ListFilters, filtered
from bot.cli.shape import CommandGroup
from bot.cli.table import Column, print_table

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.store.deliveries import LedgerLine

app = CommandGroup(help="List webhooks, explain what became of one, replay one.")
Event = Annotated[str, typer.Option(metavar="NAME", help="The event of a bare payload, such as issue_comment.")]
IdOrFile = Annotated[
    str,
    typer.Argument(metavar="ID|FILE", help="As `deliveries list` shows it; or a payload, bare or as GitHub shows it."),
]


@app.command("list")
@filtered("repo", "state", "by", "since", "limit")
def list_(
    filters: ListFilters,
    noise: Annotated[bool, typer.Option("--noise", help="Also what our own comments and checks caused.")] = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """List the latest webhooks, newest first."""
    from bot.store import deliveries
    from bot.words import replies

    sought = filters.sought(states=[*deliveries.DeliveryState], without=() if noise else replies.NOISE)
    rows = [_row(one) for one in read_store(config, lambda store: deliveries.listing(store, sought))]
    none = "No delivery matches." if sought.narrows else "No deliveries yet."
    print_table(rows, COLUMNS, as_json=as_json, none=none)


COLUMNS = (
    Column("WHEN", lambda row: console.when(row["received_at"])),
    Column("THREAD", lambda row: (row["repo"] or "") + (f"#{row['number']}" if row["number"] else "")),
    Column("BY", lambda row: row["sender"] or ""),
    Column("EVENT", lambda row: f"{row['event']}{'.' + row['action'] if row['action'] else ''}"),
    Column("STATE", lambda row: row["state"]),
    Column("SESSION", lambda row: row["session_id"] or ""),
    Column("ID", lambda row: row["guid"]),
    Column("WHY", lambda row: row["reason"] or ""),
)


def _row(delivery: LedgerLine) -> dict[str, Any]:
    """Add `explained`: the sentence of `why` in a thread."""
    from bot.text.blocks import plain
    from bot.words import replies

    explained = replies.fate(delivery, replies.moment(delivery.received_at), plain)
    return {**dataclasses.asdict(delivery), "explained": explained}


@app.command()
def explain(id_or_file: IdOrFile, event: Event = "", as_json: AsJson = False, config: Config = None) -> None:
    """Explain why a delivery started something or not, as `why` does, or what a delivery in a file would start."""
    from bot.store import deliveries
    from bot.store.base import place

    path = Path(id_or_file)
    found = delivery_file.read(path, event) if path.is_file() else None
    guid = found.guid if found else id_or_file

    async def look(store: Store) -> dict[str, Any] | None:
        stored = await deliveries.line(store, guid) if guid else None
        return _row(stored) if stored else None

    is_stored = bool(guid) and (found is None or console.run(asyncio.to_thread(place(database(config)).exists)))
    row = read_store(config, look) if is_stored else None
    if row is None and found is not None:
        _foretell(found, as_json, config)
        return
    if row is None:
        console.fail(f"There is no delivery {id_or_file}: it never arrived, or its record has expired.")
    if as_json:
        console.print_json(row)
        return
    typer.echo(row["explained"])
    if row["session_id"]:
        typer.echo(f"session: {row['session_id']}")


def _foretell(found: Read, as_json: bool, config: Path | None) -> None:
    word = settings.from_environment(config).get("FORGEHAND_COMMAND", "").strip() or "/claude"
    words = delivery_file.foretold(found, word)
    if as_json:
        console.print_json({"event": found.event, "guid": found.guid, "state": None, "explained": words})
    else:
        typer.echo(f"{words} It has not arrived yet: `forgehand deliveries replay` delivers it.")


@app.command()
def replay(id_or_file: IdOrFile, event: Event = "", as_json: AsJson = False, config: Config = None) -> None:
    """Replay a delivery: one that failed, by its id, or one from a file."""
    path, body = Path(id_or_file), {"guid": id_or_file}
    if path.is_file():
        body = {"delivery": delivery_file.as_new(delivery_file.read(path, event))}
    service.show_answer(service.ask(database(config), "replay", body), "replayed", as_json=as_json)
