"""`forgehand deliveries …`: what became of each webhook and why, and a way to have one taken up again."""

from __future__ import annotations

import dataclasses
import json
import time
import uuid
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.cli import console, service
from bot.cli.asked import AsJson, Config, database
from bot.cli.shape import App
from bot.models import DeliveryId

app = App(help="List webhooks, explain what became of one, replay one.")
Event = Annotated[str, typer.Option(metavar="NAME", help="The event of a bare payload, such as issue_comment.")]
Limit = Annotated[int, typer.Option(metavar="N", help="How many at most.")]
Guid = Annotated[str, typer.Argument(metavar="ID", help="As `deliveries list` and GitHub show it.")]
IdOrFile = Annotated[
    str,
    typer.Argument(metavar="ID|FILE", help="As `deliveries list` shows it; or a payload, bare or as GitHub shows it."),
]
LARGEST = 25 << 20
UNREADABLE = "This file is neither a payload nor a delivery as GitHub's API and the App's page show it."


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


async def _list(path: Path, limit: int) -> list[dict[str, Any]]:
    from bot.store import deliveries
    from bot.store.base import Store

    async with Store.reading(path) as store:
        return [_row(one) for one in await deliveries.listing(store, limit)]


def _row(delivery: Any) -> dict[str, Any]:
    """Without the body; `explained` is the sentence of `why` in a thread."""
    from bot.live.figures import duration
    from bot.text.characters import plain
    from bot.words import replies

    found = {name: value for name, value in dataclasses.asdict(delivery).items() if name != "body"}
    return {**found, "explained": replies.fate(delivery, duration(time.time() - delivery.received_at), plain)}


@app.command()
def explain(guid: Guid, as_json: AsJson = False, config: Config = None) -> None:
    """Why a delivery was acted upon or not, in the words of `why`."""
    row = console.run(_get(database(config), guid))
    if row is None:
        console.fail(f"There is no delivery {guid} in the ledger: it never came, or it is older than what is kept.")
    if as_json:
        console.print_json(row)
        return
    typer.echo(row["explained"])
    if row["session_id"]:
        typer.echo(f"session: {row['session_id']}")


async def _get(path: Path, guid: str) -> dict[str, Any] | None:
    from bot.store import deliveries
    from bot.store.base import Store

    async with Store.reading(path) as store:
        found = await deliveries.get(store, guid)
        return _row(found) if found else None


@app.command()
def replay(id_or_file: IdOrFile, event: Event = "", as_json: AsJson = False, config: Config = None) -> None:
    """Have a delivery taken up again: one that failed, by its id, or one from a file."""
    path, body = Path(id_or_file), {"guid": id_or_file}
    if path.is_file():
        body = {"delivery": _from_file(path, event)}
    done, answer = console.run(service.ask(database(config), "replay", body))
    if as_json:
        console.print_json({"replayed": done, "message": answer})
    elif done:
        typer.echo(answer)
    if not done:
        console.fail(answer)


def _from_file(path: Path, event: str) -> str:
    """A new delivery of the ledger, as JSON; texts that were acted upon before still start nothing twice."""
    import msgspec

    from bot.store.deliveries import NewDelivery, digest
    from bot.web import envelope

    if path.stat().st_size > LARGEST:
        console.fail("This file is larger than any payload of GitHub.")
    try:
        name, payload = _payload(json.loads(path.read_bytes()), event)
    except (ValueError, AttributeError, TypeError, RecursionError):
        console.fail(UNREADABLE)
    if not name:
        console.fail("Which event is it? Say it with `--event issue_comment`, for example.")
    body = json.dumps(payload)
    about = dataclasses.asdict(envelope.read(body.encode()))
    guid = DeliveryId(f"replay-{uuid.uuid4()}")
    return msgspec.json.encode(NewDelivery(guid, name, digest(body.encode()), body, **about)).decode()


def _payload(found: Any, event: str) -> tuple[str, dict[str, Any]]:
    """The event's name and its payload, from a delivery with its request or from a payload alone."""
    request = found.get("request")
    if not isinstance(request, dict):
        return event, dict(found)
    headers = {str(name).lower(): str(value) for name, value in (request.get("headers") or {}).items()}
    return event or headers.get("x-github-event") or str(found.get("event") or ""), dict(request["payload"])
