"""`forgehand registries …`: the package registries of an account. Secrets come in by stdin, a prompt or a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
from bot.settings import Secret

if TYPE_CHECKING:
    from bot.models import InstallationId
    from bot.outside.probing import RegistryTrial
    from bot.store.base import Store
    from bot.store.outside_services import OutsideService

app = CommandGroup(help="Store, list, try and remove the package registries that repositories may open.")
For = Annotated[
    str | None,
    typer.Option("--installation", metavar="ACCOUNT", help="Only for this account (or installation number)."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="As repositories name it in `registries`.")]


@dataclass(frozen=True)
class RegistryWish:
    """What was typed; the secret comes in by itself."""

    name: str
    kind: str
    address: str
    scope: str
    hosts: str
    credential: str
    credential_name: str


@app.command()
def add(  # noqa: PLR0913, PLR0917 - typer reads its options here
    name: Name,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="npm, pypi, cargo, go, maven or generic.")],
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Where it is, such as https://host/path/.")],
    scope: Annotated[
        str, typer.Option(metavar="NAMES", help="Only for these scopes or prefixes, joined by commas.")
    ] = "",
    hosts: Annotated[
        str, typer.Option(metavar="NAMES", help="Further hosts to which it may redirect, joined by commas.")
    ] = "",
    user: Annotated[str, typer.Option(metavar="NAME", help="The secret is this user's password.")] = "",
    header: Annotated[str, typer.Option(metavar="NAME", help="The secret is the value of this header.")] = "",
    public: Annotated[bool, typer.Option("--public", help="It needs no credential.")] = False,
    secret_file: Annotated[Path | None, typer.Option(metavar="FILE", help="The file that holds the secret.")] = None,
    installation: For = None,
    config: Config = None,
) -> None:
    """Store a registry, with its secret from stdin, a prompt or a file; in place of one with its name."""
    if sum((bool(user), bool(header), public)) > 1:
        console.fail("Give one of --user, --header and --public; without them, the secret is a bearer token.", 2)
    kept_as = "none" if public else "basic" if user else "header" if header else "bearer"
    wish = RegistryWish(name, kind, address, scope, hosts, kept_as, user or header)
    secret = None if public else secret_of(f"Secret of {name}", secret_file)
    typer.echo(console.run(store(settings.from_environment(config), wish, secret, installation)))


async def store(values: Mapping[str, str], wish: RegistryWish, secret: Secret | None, account: str | None) -> str:
    """Store a registry, whether the service runs or not; say how a first request to it ended."""
    from bot.outside import probing, registries, services
    from bot.store.outside_services import CredentialKind, OutsideService, Purpose

    inside = settings.read_inside(values)
    async with opened(values, writes=True) as (rows, vault, _):
        place, words = await installation_of(rows, account)
        service = OutsideService(
            place, Purpose.REGISTRY, wish.name, wish.kind, wish.address, "operator",
            scope=wish.scope, options={registries.HOSTS: wish.hosts} if wish.hosts else {},
            credential=CredentialKind(wish.credential), credential_name=wish.credential_name,
        )  # fmt: skip
        registries.check(service)
        await services.keep(rows, vault, service, secret, account=words, inside=inside)
        trial = await probing.try_out(service, vault, inside)
    return f"{wish.name} is stored for {words}. {trial.words}"


@app.command("list")
def list_(as_json: AsJson = False, config: Config = None) -> None:
    """List the stored registries, never their secrets."""
    print_table(console.run(_list(config)), COLUMNS, as_json=as_json, none="No registries are stored.")


COLUMNS = (
    Column("NAME", lambda row: row["name"]),
    Column("FOR", lambda row: row["for"]),
    Column("KIND", lambda row: row["kind"]),
    Column("SCOPE", lambda row: row["scope"]),
    Column("CREDENTIAL", lambda row: row["credential"]),
    Column("ADDRESS", lambda row: row["address"]),
)


async def _list(config: Path | None) -> list[dict[str, Any]]:
    from bot.store import outside_services, repos
    from bot.store.outside_services import Purpose

    async with opened(settings.from_environment(config), writes=False) as (store, _, _):
        accounts = await repos.installed_accounts(store)
        return [
            {
                "name": one.name,
                "installation": one.installation,
                "for": accounts.get(one.installation, str(one.installation)) if one.installation else "everybody",
                "kind": one.kind,
                "address": one.address,
                "scope": one.scope,
                "credential": one.credential.value,
                "stored_by": one.stored_by,
                "stored_at": one.stored_at,
            }
            for one in await outside_services.every(store, Purpose.REGISTRY)
        ]


@app.command()
def remove(name: Name, installation: For = None, config: Config = None) -> None:
    """Forget a registry and its secret. Sessions that read it now cannot go on with it."""
    typer.echo(console.run(_remove(config, name, installation)))


async def _remove(config: Path | None, name: str, account: str | None) -> str:
    from bot.store import outside_services

    async with opened(settings.from_environment(config), writes=True) as (store, _, _):
        place, words = await installation_of(store, account)
        service = await _stored(store, name, place, words)
        await outside_services.remove(store, service, by="operator", account=words)
    return f"{name} is forgotten for {words}."


@app.command("test")
def try_(name: Name, installation: For = None, config: Config = None) -> None:
    """Ask a stored registry with its credential, and show what it answers."""
    trial = console.run(_try(config, name, installation))
    if not trial.works:
        console.fail(trial.words)
    typer.echo(trial.words)


async def _try(config: Path | None, name: str, account: str | None) -> RegistryTrial:
    from bot.outside import probing

    values = settings.from_environment(config)
    async with opened(values, writes=False) as (store, vault, _):
        place, words = await installation_of(store, account)
        service = await _stored(store, name, place, words)
        return await probing.try_out(service, vault, settings.read_inside(values))


async def _stored(store: Store, name: str, place: InstallationId, words: str) -> OutsideService:
    from bot.store import outside_services
    from bot.store.outside_services import Purpose

    for one in await outside_services.of_installation(store, Purpose.REGISTRY, place):
        if one.name == name:
            return one
    raise UserError(f"There is no registry {name} stored for {words}. `forgehand registries list` shows all.")
