"""`forgehand keys …`: the encrypted keys. Values come in by stdin or a prompt and are never shown."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot import settings
from bot.cli import console
from bot.cli.asked import AsJson, Config
from bot.cli.shape import CommandGroup
from bot.cli.table import Column, print_table
from bot.cli.vault_access import installation_of, opened
from bot.errors import UserError
from bot.settings import Secret

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.web.credentials import Trial

app = CommandGroup(help="Store, list, rotate and try the keys for the model.")
For = Annotated[
    str | None,
    typer.Option("--installation", metavar="ACCOUNT", help="Only for this account (or installation number)."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN.")]


Check = Annotated[bool, typer.Option("--check/--no-check", help="Try it with a free request before it is stored.")]


@app.command("set")
def set_(name: Name, installation: For = None, check: Check = True, config: Config = None) -> None:
    """Store a key from stdin or a prompt, if it works. A running service uses it for its next request."""
    from bot.vault import NAMES

    if name not in NAMES:
        console.fail(f"There is no key called {name}; known are {' and '.join(NAMES)}.", 2)
    value = Secret(typer.prompt(name, hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.read())
    typer.echo(console.run(_set(config, name, value, installation, check=check)))


async def _set(config: Path | None, name: str, value: Secret, account: str | None, *, check: bool) -> str:
    from bot import vault as vaults
    from bot.web import credentials

    values = settings.from_environment(config)
    model = settings.read_model(values)
    if check:
        try:
            value = await credentials.proven(name, value, model, "your input")
        except UserError as error:
            raise UserError(f"{error} Nothing was stored; --no-check stores it untested.") from None
    async with opened(values, writes=True) as (store, vault, _):
        place, words = await installation_of(store, account)
        await vault.put(name, place, value)
        await _note(store, "key stored", f"{name} of {words}" if place else name)
    also = {vaults.API_KEY: model.api_key, vaults.OAUTH_TOKEN: model.oauth_token}.get(name)
    stored = f"{name} is stored for {words} ({vaults.fingerprint(Secret(value.reveal().strip()))})."
    if also and not place:
        stored += " The key in the environment wins over it."
    return f"{stored} {vaults.TERMS}" if name == vaults.OAUTH_TOKEN else stored


@app.command("list")
def list_(as_json: AsJson = False, config: Config = None) -> None:
    """List the stored keys, never their values."""

    print_table(console.run(_list(config)), COLUMNS, as_json=as_json, none="No keys are stored.")


COLUMNS = (
    Column("NAME", lambda row: row["name"]),
    Column("FOR", lambda row: row["for"]),
    Column("DAYS OLD", lambda row: f"{row['age_days']:.0f}", right=True),
    Column("FINGERPRINT", lambda row: row["fingerprint"] or "CANNOT BE READ: set it again"),
)


async def _list(config: Path | None) -> list[dict[str, Any]]:
    from bot.store import repos

    async with opened(settings.from_environment(config), writes=False) as (store, vault, _):
        accounts = await repos.installed_accounts(store)
        now = store.now()
        return [
            {
                "name": one.name,
                "installation": one.installation,
                "for": accounts.get(one.installation, str(one.installation)) if one.installation else "everybody",
                "age_days": round(max(now - one.updated_at, 0) / 86_400, 2),
                "updated_at": one.updated_at,
                "fingerprint": one.fingerprint,
                "key": one.key_id,
            }
            for one in await vault.entries()
        ]


@app.command()
def remove(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="As in `keys list`.")] = None,
    installation: For = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All keys, even unreadable ones; the service must not run.")
    ] = False,
    config: Config = None,
) -> None:
    """Forget a stored key."""
    if everything == (name is not None):
        console.fail("Name the key to forget, or give --all.", 2)
    typer.echo(console.run(_remove(config, name, installation)))


async def _remove(config: Path | None, name: str | None, account: str | None) -> str:
    from bot.store.accounts import remove_credential, remove_credentials
    from bot.store.base import Store
    from bot.store.data_directory import DataDirLock, Occupied

    values = settings.from_environment(config)
    if name is None:
        folder = settings.data_dir(values)
        with DataDirLock(folder):
            store = await Store.open(settings.read_database(values))
            try:
                if await store.is_claimed():
                    raise Occupied(f"Forgehand is already running with {store.name}. Stop it first.")
                await remove_credentials(store)
                await _note(store, "key forgotten", "all of them")
            finally:
                await store.close()
        return "All stored keys are forgotten."
    async with opened(values, writes=True) as (store, _, _):
        place, words = await installation_of(store, account)
        if not await remove_credential(store, name, place):
            raise UserError(f"There is no {name} stored for {words}.")
        await _note(store, "key forgotten", f"{name} of {words}" if place else name)
        return f"{name} is forgotten for {words}."


@app.command()
def rotate(config: Config = None) -> None:
    """Encrypt everything again with the first key of FORGEHAND_SECRET_KEY."""
    count = console.run(_rotate(config))
    what = "secret" if count == 1 else "secrets"
    typer.echo(f"{count} {what} encrypted again; you can remove the older keys from FORGEHAND_SECRET_KEY.")


async def _rotate(config: Path | None) -> int:
    async with opened(settings.from_environment(config), writes=True) as (store, vault, alone):
        if not alone and not await vault.knows_newest():
            raise UserError(
                "The running service does not have the new key yet: restart it with the same FORGEHAND_SECRET_KEY "
                "(new,old), then rotate. Running sessions go on."
            )
        count = await vault.rotate()
        await _note(store, "keys rotated", f"{count} encrypted again")
        return count


async def _note(store: Store, action: str, subject: str) -> None:
    """Write to the audit log, in the words of the pages on which an account's owners do the same."""
    from bot.store import audit

    await audit.add(store, "operator", action, subject)


@app.command("test")
def try_(installation: For = None, as_json: AsJson = False, config: Config = None) -> None:
    """Send a free request with the key that a session would get, and show the answer."""
    trial = console.run(_try(config, installation))
    if as_json:
        console.print_json(dataclasses.asdict(trial))
    elif trial.works:
        typer.echo(trial.words)
    if not trial.works:
        console.fail(trial.words)


async def _try(config: Path | None, account: str | None) -> Trial:
    from bot.web.credentials import NONE, find, try_out

    values = settings.from_environment(config)
    model = settings.read_model(values)
    if model.provider.at is not None:
        from bot.web import provider_trial

        return await provider_trial.try_out(model)
    async with opened(values, writes=False) as (store, vault, _):
        place, _ = await installation_of(store, account)
        found = await find(vault, model, place)
    if found is None:
        raise UserError(NONE)
    return await try_out(found, model.upstream, model.model)
