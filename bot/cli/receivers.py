"""`forgehand receivers …`: addresses that hear of turns. These are secrets, and come in by stdin, prompt or file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot import settings
from bot.cli import console
from bot.cli.asked import AsJson, Config
from bot.cli.shape import CommandGroup
from bot.cli.table import Column, print_table
from bot.cli.vault_access import installation_of, opened, secret_of
from bot.errors import UserError

if TYPE_CHECKING:
    from bot.models import InstallationId
    from bot.outside.posting import PostingResult
    from bot.outside.receivers import ReceiverWish
    from bot.store.base import Store
    from bot.store.outside_services import OutsideService

app = CommandGroup(help="Store, list, try and remove the receivers of outgoing webhooks.")
For = Annotated[
    str | None,
    typer.Option("--installation", metavar="ACCOUNT", help="Only for this account (or installation number)."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="As repositories name it in `notify`.")]


@app.command()
def add(
    name: Name,
    on: Annotated[
        str,
        typer.Option(metavar="EVENTS", help="Events of all repositories: ended, asks, over_budget; joined by commas."),
    ] = "",
    address_file: Annotated[Path | None, typer.Option(metavar="FILE", help="The file that holds the address.")] = None,
    installation: For = None,
    config: Config = None,
) -> None:
    """Store a receiver, with its address from stdin, a prompt or a file; show the key that signs, once."""
    from bot.outside import receivers
    from bot.store.bulletins import words

    try:
        events = receivers.read_events(words(on))
    except UserError as error:
        console.fail(str(error), 2)
    wish = receivers.ReceiverWish(name, secret_of(f"Address of {name}", address_file), events)
    typer.echo(console.run(_add(config, wish, installation)))


async def _add(config: Path | None, wish: ReceiverWish, account: str | None) -> str:
    from bot.outside import receivers
    from bot.outside.receivers import ReceiverPlace

    values = settings.from_environment(config)
    async with opened(values, writes=True) as (store, vault, _):
        installation, words = await installation_of(store, account)
        place = ReceiverPlace(installation, words, "operator")
        service, key = await receivers.keep(store, vault, wish, place, settings.read_inside(values))
    return f"{service.name} is stored for {words}. It can check our signature with this key: {key.reveal()}"


COLUMNS = (
    Column("NAME", lambda row: row["name"]),
    Column("FOR", lambda row: row["for"]),
    Column("ON", lambda row: row["on"] or "as repositories say"),
    Column("WAITING", lambda row: str(row["waiting"]), right=True),
    Column("GIVEN UP", lambda row: str(row["given_up"]), right=True),
    Column("HOST", lambda row: row["host"]),
    Column("PROBLEM", lambda row: row["problem"] or ""),
)


@app.command("list")
def list_(as_json: AsJson = False, config: Config = None) -> None:
    """List the stored receivers and how they took what they were sent, never their addresses."""
    print_table(console.run(_list(config)), COLUMNS, as_json=as_json, none="No receivers are stored.")


async def _list(config: Path | None) -> list[dict[str, Any]]:
    from bot.store import bulletins, outside_services, repos
    from bot.store.outside_services import Purpose

    async with opened(settings.from_environment(config), writes=False) as (store, _, _):
        accounts = await repos.installed_accounts(store)
        standings = {(one.installation_id, one.receiver): one for one in await bulletins.standings(store)}
        rows = []
        for one in await outside_services.every(store, Purpose.RECEIVER):
            standing = standings.get((one.installation, one.name))
            rows.append(
                {
                    "name": one.name,
                    "installation": one.installation,
                    "for": accounts.get(one.installation, str(one.installation)) if one.installation else "everybody",
                    "on": one.options.get(bulletins.ON, ""),
                    "host": one.address,
                    "waiting": standing.waiting if standing else 0,
                    "given_up": standing.given_up if standing else 0,
                    "problem": standing.problem if standing else None,
                    "stored_by": one.stored_by,
                    "stored_at": one.stored_at,
                }
            )
        return rows


@app.command()
def remove(name: Name, installation: For = None, config: Config = None) -> None:
    """Forget a receiver, its address and its key. Forgehand gives up what waits for it."""
    typer.echo(console.run(_remove(config, name, installation)))


async def _remove(config: Path | None, name: str, account: str | None) -> str:
    from bot.store import outside_services

    async with opened(settings.from_environment(config), writes=True) as (store, _, _):
        place, words = await installation_of(store, account)
        await outside_services.remove(store, await _stored(store, name, place, words), by="operator", account=words)
    return f"{name} is forgotten for {words}."


@app.command("test")
def try_(name: Name, installation: For = None, config: Config = None) -> None:
    """Send a stored receiver a signed test, and show what it answers."""
    result = console.run(_try(config, name, installation))
    if not result.works:
        console.fail(result.words)
    typer.echo(result.words)


async def _try(config: Path | None, name: str, account: str | None) -> PostingResult:
    from bot.outside import posting

    values = settings.from_environment(config)
    async with opened(values, writes=False) as (store, vault, _):
        place, words = await installation_of(store, account)
        service = await _stored(store, name, place, words)
        return await posting.try_out(service, vault, settings.read_inside(values), store.now)


async def _stored(store: Store, name: str, place: InstallationId, words: str) -> OutsideService:
    from bot.store import outside_services
    from bot.store.outside_services import Purpose

    for one in await outside_services.of_installation(store, Purpose.RECEIVER, place):
        if one.name == name:
            return one
    raise UserError(f"There is no receiver {name} stored for {words}. `forgehand receivers list` shows all.")
