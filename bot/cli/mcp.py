"""`forgehand mcp …`: the MCP servers that agents reach through the gateway. Secrets come in by stdin or a prompt."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bot import settings
from bot.cli import console
from bot.cli.asked import AsJson, Config
from bot.cli.shape import CommandGroup
from bot.cli.table import Column, print_table
from bot.cli.vault_access import installation_of, opened
from bot.errors import UserError

app = CommandGroup(help="Store, list, try and remove MCP servers; their credentials never enter a sandbox.")
For = Annotated[
    str | None,
    typer.Option("--installation", metavar="ACCOUNT", help="Only for this account (or installation number)."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name by which a repository's config opens it.")]
OPERATOR = "operator"


@app.command()
def add(  # noqa: PLR0913, PLR0917 - one parameter for each option
    name: Name,
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Its Streamable HTTP address.")],
    credential: Annotated[
        str, typer.Option(metavar="KIND", help="none, bearer, basic, header, client or refresh (the last two: OAuth).")
    ] = "none",
    identity: Annotated[
        str, typer.Option("--as", metavar="TEXT", help="The user, the header's name, or the OAuth client's id.")
    ] = "",
    token_address: Annotated[str, typer.Option(metavar="ADDRESS", help="Gives an OAuth client its tokens.")] = "",
    scope: Annotated[str, typer.Option(metavar="WORDS", help="The scope of an OAuth client's tokens.")] = "",
    tools: Annotated[
        str, typer.Option(metavar="NAMES", help="The tools that repositories may open. Default: any.")
    ] = "",
    ask: Annotated[bool, typer.Option("--ask", help="People are asked about each call.")] = False,
    forks: Annotated[bool, typer.Option("--forks", help="Also for work on the code of forks.")] = False,
    installation: For = None,
    config: Config = None,
) -> None:
    """Store a server, in place of one with its name, and ask it for its tools.

    The secret comes from stdin or a prompt. For `refresh` it is the refresh token, after the client's secret and a
    space if the client has one."""
    from bot.web.mcp.entry import ServerEntry

    names = tuple(tools.replace(",", " ").split())
    entry = ServerEntry(name, address, credential, identity, token_address, scope, names, ask, forks)
    secret = ""
    if credential != "none":
        secret = typer.prompt("Secret", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.read()
    typer.echo(console.run(_add(config, entry, secret, installation)))


async def _add(config: Path | None, entry: Any, secret: str, account: str | None) -> str:
    from bot.web.mcp import entry as entries

    values = settings.from_environment(config)
    inside = settings.read_inside(values)
    async with opened(values, writes=True) as (store, vault, _):
        place, words = await installation_of(store, account)
        service = entry.service(place, OPERATOR, inside)
        await entries.keep(store, vault, service, secret, account=words, inside=inside)
        works, said = await entries.try_out(store, vault, service, inside)
    return f"{service.name} is stored for {words}. {said if works else f'But: {said}'}"


@app.command("list")
def list_(as_json: AsJson = False, config: Config = None) -> None:
    """List the stored servers, never their secrets."""
    print_table(console.run(_list(config)), COLUMNS, as_json=as_json, none="No MCP servers are stored.")


COLUMNS = (
    Column("NAME", lambda row: row["name"]),
    Column("FOR", lambda row: row["for"]),
    Column("ADDRESS", lambda row: row["address"]),
    Column("CREDENTIAL", lambda row: row["credential"]),
    Column("RULES", lambda row: row["rules"]),
)


async def _list(config: Path | None) -> list[dict[str, Any]]:
    from bot.store import outside_services, repos
    from bot.store.outside_services import Purpose
    from bot.web.mcp import entry as entries

    async with opened(settings.from_environment(config), writes=False) as (store, _, _):
        accounts = await repos.installed_accounts(store)
        return [
            {
                "name": one.name,
                "installation": one.installation,
                "for": accounts.get(one.installation, str(one.installation)) if one.installation else "everybody",
                "address": one.address,
                "credential": entries.credential_words(one),
                "rules": entries.rules_words(one),
            }
            for one in await outside_services.every(store, Purpose.MCP)
        ]


@app.command("test")
def try_(name: Name, installation: For = None, config: Config = None) -> None:
    """Ask a stored server for its tools, as a session would."""
    works, said = console.run(_try(config, name, installation))
    if not works:
        console.fail(said)
    typer.echo(said)


async def _try(config: Path | None, name: str, account: str | None) -> tuple[bool, str]:
    from bot.store import outside_services
    from bot.store.outside_services import Purpose
    from bot.web.mcp import entry as entries

    values = settings.from_environment(config)
    async with opened(values, writes=True) as (store, vault, _):  # a refresh token may be replaced
        place, words = await installation_of(store, account)
        found = (await outside_services.usable(store, Purpose.MCP, place, [name])).get(name)
        if found is None:
            raise UserError(f"There is no MCP server {name} stored for {words}.")
        return await entries.try_out(store, vault, found, settings.read_inside(values))


@app.command()
def remove(name: Name, installation: For = None, config: Config = None) -> None:
    """Forget a server and its secret."""
    typer.echo(console.run(_remove(config, name, installation)))


async def _remove(config: Path | None, name: str, account: str | None) -> str:
    from bot.store import outside_services
    from bot.store.outside_services import Purpose

    async with opened(settings.from_environment(config), writes=True) as (store, _, _):
        place, words = await installation_of(store, account)
        known = await outside_services.of_installation(store, Purpose.MCP, place)
        found = next((one for one in known if one.name == name), None)
        if found is None or not await outside_services.remove(store, found, by=OPERATOR, account=words):
            raise UserError(f"There is no MCP server {name} stored for {words}.")
        return f"{name} is forgotten for {words}."
