"""`forgehand config show`: the settings of an account, or the values of a repository, and where each one stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot import account_settings, config_values
from bot.cli import console
from bot.cli.asked import read_store
from bot.cli.table import Column, print_table
from bot.cli.vault_access import installation_of
from bot.models import ACCOUNT_REPOSITORY
from bot.settings import Limits
from bot.store import accounts, repo_configs

if TYPE_CHECKING:
    from bot.store.base import Store


def of_account(config: Path | None, account: str, limits: Limits, *, as_json: bool) -> None:
    async def look(store: Store) -> tuple[list[dict[str, Any]], str]:
        installation, named = await installation_of(store, account)
        choices = await accounts.settings_of(store, installation)
        shared = await accounts.own_repository(store, installation)
        rows = account_settings.listed(limits, choices)
        if shared is not None and shared.config is not None:
            found = account_settings.defaults({}, shared.config, named).rows()
            rows += [{"name": one["key"], "title": one["key"], "words": one["value"], **one} for one in found]
        return rows, (shared.problem if shared else None) or ""

    rows, problem = read_store(config, look)
    print_table(rows, ACCOUNT_COLUMNS, as_json=as_json, end=f"In {ACCOUNT_REPOSITORY}: {problem}" if problem else "")


def of_repository(config: Path | None, name: str, limits: Limits, *, as_json: bool) -> None:
    async def look(store: Store) -> list[dict[str, str]] | None:
        found = await repo_configs.named(store, name)
        if found is None or found.config_values is None:
            return None
        choices = await accounts.settings_of(store, (await installation_of(store, found.owner))[0])
        return config_values.listed(found.config_values, limits, choices)

    rows = read_store(config, look)
    if rows is None:
        console.fail(f"Forgehand has not read the config of {name} yet; it does when somebody gives a command there.")
    print_table(rows, COLUMNS, as_json=as_json)


ACCOUNT_COLUMNS = (
    Column("SETTING", lambda row: row["title"]),
    Column("VALUE", lambda row: row["words"]),
    Column("SET BY", lambda row: row["source"]),
)
COLUMNS = (
    Column("KEY", lambda row: row["key"]),
    Column("VALUE", lambda row: row["value"]),
    Column("FROM", lambda row: row["source"]),
)
