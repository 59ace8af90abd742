"""`forgehand deliveries …`: what became of each webhook and why, and a way to have one taken up again."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from bot import settings
from bot.cli import console, delivery_file, service
from bot.cli.asked import AsJson, Config, database
from bot.cli.delivery_file import Read
from bot.cli.shape import CommandGroup
from bot.settings import Address

app = CommandGroup(help="List webhooks, explain what became of one, replay one.")
Event = Annotated[str, typer.Option(metavar="NAME", help="The event of a bare payload, such as issue_comment.")]
Limit = Annotated[int, typer.Option(metavar="N", help="How many at most.")]
IdOrFile = Annotated[
    str,
    typer.Argument(metavar="ID|FILE", help="As `deliveries list` shows it; or a payload, bare or as GitHub shows it."),
]


@app.command("list")
def list_(as_json: AsJson = False, limit: Limit = 100, config: Config = None) -> None:
    """The latest, newest first."""
    rows = console.run(_list(database(config), limit))
    if as_json:
        console.print_json(rows)
        return
    if not rows:
        typer.echo("No deliveries yet.")
    for row in rows:
        typer.echo(f"{row['guid']}  {row['explained']}")


async def _list(where: Address, limit: int) -> list[dict[str, Any]]:
    from bot.store import deliveries
    from bot.store.base import Store

    async with Store.reading(where) as store:
        return [_row(one) for one in await deliveries.listing(store, limit)]


def _row(delivery: Any) -> dict[str, Any]:
    """Without the body; `explained` is the sentence of `why` in a thread."""
    from bot.live.sections import duration
    from bot.text.blocks import plain
    from bot.words import replies

    found = {name: value for name, value in dataclasses.asdict(delivery).items() if name != "body"}
    return {**found, "explained": replies.fate(delivery, duration(time.time() - delivery.received_at), plain)}


@app.command()
def explain(id_or_file: IdOrFile, event: Event = "", as_json: AsJson = False, config: Config = None) -> None:
    """Why a delivery was acted upon or not, in the words of `why`; or what would come of one in a file."""
    from bot.store.base import exists

    path, ledger = Path(id_or_file), database(config)
    found = delivery_file.read(path, event) if path.is_file() else None
    guid = found.guid if found else id_or_file
    row = console.run(_get(ledger, guid)) if guid and (found is None or exists(ledger)) else None
    if row is None and found is not None:
        _foretell(found, as_json, config)
        return
    if row is None:
        console.fail(
            f"There is no delivery {id_or_file} in the ledger: it never came, or it is older than what is kept."
        )
    if as_json:
        console.print_json(row)
        return
    typer.echo(row["explained"])
    if row["session_id"]:
        typer.echo(f"session: {row['session_id']}")


def _foretell(found: Read, as_json: bool, config: Path | None) -> None:
    """Of one that is not in the ledger."""
    word = settings.from_environment(config).get("FORGEHAND_COMMAND", "").strip() or "/claude"
    words = delivery_file.foretold(found, word)
    if as_json:
        console.print_json({"event": found.event, "guid": found.guid, "state": None, "explained": words})
    else:
        typer.echo(f"{words} It is not in the ledger: `forgehand deliveries replay` has it taken up.")


async def _get(where: Address, guid: str) -> dict[str, Any] | None:
    from bot.store import deliveries
    from bot.store.base import Store

    async with Store.reading(where) as store:
        found = await deliveries.get(store, guid)
        return _row(found) if found else None


@app.command()
def replay(id_or_file: IdOrFile, event: Event = "", as_json: AsJson = False, config: Config = None) -> None:
    """Have a delivery taken up again: one that failed, by its id, or one from a file."""
    path, body = Path(id_or_file), {"guid": id_or_file}
    if path.is_file():
        body = {"delivery": delivery_file.as_new(delivery_file.read(path, event))}
    done, answer = console.run(service.ask(database(config), "replay", body))
    if as_json:
        console.print_json({"replayed": done, "message": answer})
    elif done:
        typer.echo(answer)
    if not done:
        console.fail(answer)
