"""`forgehand tokens …`: the API's tokens. A secret is printed once, by the command that makes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot import settings
from bot.cli import console
from bot.cli.asked import AsJson, Config, read_store
from bot.cli.shape import CommandGroup
from bot.cli.table import Column, print_table
from bot.cli.vault_access import opened
from bot.errors import UserError

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.store.repos import InstallationRow
    from bot.token_making import TokenWish

app = CommandGroup(help="Make, list and revoke tokens for the API.")
Account = Annotated[str, typer.Option("--installation", metavar="ACCOUNT", help="The account, or its number.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name, in lower case, such as nightly-ci.")]


@app.command()
def create(  # noqa: PLR0913, PLR0917 - typer reads its options here
    name: Name,
    installation: Account,
    person: Annotated[str, typer.Option("--for", metavar="LOGIN", help="The person in whose name it asks.")],
    repo: Annotated[
        list[str], typer.Option(metavar="OWNER/NAME", help="A repository that it opens; give it once for each.")
    ],
    kind: Annotated[
        list[str], typer.Option(metavar="KIND", help="A kind of turn that it may start: run, ask, plan, review.")
    ],
    budget: Annotated[str, typer.Option(metavar="USD", help="Dollars for all of its turns together.")],
    days: Annotated[str, typer.Option(metavar="DAYS", help="After how many days it ends.")] = "30",
    may_answer: Annotated[bool, typer.Option("--may-answer", help="It may answer approvals.")] = False,
    config: Config = None,
) -> None:
    """Make a token, and print its secret. Nobody can read it again."""
    from bot.token_making import TokenWish

    wish = TokenWish(name, tuple(repo), tuple(kind), budget, days, may_answer)
    typer.echo(console.run(_create(config, wish, installation, person)))


async def _create(config: Path | None, wish: TokenWish, account: str, person: str) -> str:
    from bot import token_making
    from bot.github.client import GitHubApp

    values = settings.from_environment(config)
    github = GitHubApp(settings.read(values).github)
    try:
        async with opened(values, writes=True) as (store, _, _):
            row = await _installed(store, account)
            number = await github.account_id(person)
            if number is None:
                raise UserError(f"GitHub knows nobody named {person}.")
            return await token_making.make(wish, (person, number), row, store, github, by="operator")
    finally:
        await github.close()


@app.command("list")
def list_(as_json: AsJson = False, config: Config = None) -> None:
    """List the tokens, never their secrets."""
    print_table(read_store(config, _listed), COLUMNS, as_json=as_json, none="There are no tokens.")


COLUMNS = (
    Column("NAME", lambda row: row["name"]),
    Column("FOR", lambda row: row["for"]),
    Column("BY", lambda row: row["made_by"]),
    Column("KINDS", lambda row: ", ".join(row["kinds"])),
    Column("REPOSITORIES", lambda row: ", ".join(row["repositories"])),
    Column("USD", lambda row: f"{row['budget_usd']:.2f}", right=True),
    Column("STATE", lambda row: row["state"]),
    Column("ENDS", lambda row: console.when(row["ends_at"])),
)


async def _listed(store: Store) -> list[dict[str, Any]]:
    from bot.store import api_tokens, repos

    accounts, now = await repos.installed_accounts(store), store.now()
    return [
        {
            "name": one.name,
            "installation": one.installation_id,
            "for": accounts.get(one.installation_id, str(one.installation_id)),
            "made_by": one.made_by,
            "kinds": list(one.kinds),
            "repositories": [repo.name for repo in one.repositories],
            "may_answer": one.may_answer,
            "budget_usd": one.budget_usd,
            "state": "revoked" if one.revoked_at else "works" if one.is_live(now) else "ended",
            "made_at": one.made_at,
            "ends_at": one.ends_at,
            "used_at": one.used_at,
        }
        for one in await api_tokens.every(store)
    ]


@app.command()
def revoke(name: Name, installation: Account, config: Config = None) -> None:
    """End a token at once. What it has started goes on."""
    typer.echo(console.run(_revoke(config, name, installation)))


async def _revoke(config: Path | None, name: str, account: str) -> str:
    from bot.store import api_tokens

    async with opened(settings.from_environment(config), writes=True) as (store, _, _):
        row = await _installed(store, account)
        if not await api_tokens.revoke(store, row.id, name, by="operator", account=row.account):
            raise UserError(f"{row.account} has no token {name} that works. `forgehand tokens list` shows all.")
    return f"The token {name} of {row.account} is revoked."


async def _installed(store: Store, account: str) -> InstallationRow:
    from bot.store import repos

    known = await repos.installations(store)
    for row in known:
        if account.lower() in (row.account.lower(), str(row.id)):
            return row
    names = ", ".join(row.account for row in known) or "none so far"
    raise UserError(f"There is no installation {account}; known are: {names}.")
