"""A command's way to the vault, whether the service runs or not."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from bot import settings
from bot.cli import console
from bot.errors import UserError
from bot.models import InstallationId
from bot.settings import Secret, database

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.vault import Vault

LARGEST_SECRET = 8 << 10


def secret_of(label: str, file: Path | None) -> Secret:
    """Read a secret from a file, a prompt or stdin."""
    try:
        if file is not None:
            with file.open(encoding="utf-8") as opened_file:
                return Secret(opened_file.read(LARGEST_SECRET).strip())
        if sys.stdin.isatty():
            return Secret(typer.prompt(label, hide_input=True, err=True))
        return Secret(sys.stdin.read(LARGEST_SECRET).strip())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        console.fail(f"The secret cannot be read: {reason}.")


@asynccontextmanager
async def opened(values: Mapping[str, str], *, writes: bool) -> AsyncIterator[tuple[Store, Vault, bool]]:
    """Open the store and its vault, and say whether they are ours alone; refuse a wrong key.

    A command that only reads takes no lock, so that a service can start at the same time. If nothing is stored yet, it
    gets an empty store elsewhere, and the data directory stays empty."""
    from bot import vault as vaults
    from bot.keyring import KeyRing
    from bot.store.base import Store, place
    from bot.store.data_directory import DataDirLock, Occupied

    where, folder = settings.read_database(values), settings.data_dir(values)
    ring = KeyRing(settings.read_secret_keys(values))
    async with AsyncExitStack() as stack:
        if not writes and not await asyncio.to_thread(place(where).exists):
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="forgehand-")))
            where, writes = database.in_folder(folder), True
        alone = False
        if writes:
            with contextlib.suppress(Occupied):
                stack.enter_context(DataDirLock(folder))
                alone = True
        await asyncio.to_thread(vaults.verify, where, ring)
        store = await (Store.open(where, migrate=alone) if writes else Store.open_reader(where))
        stack.push_async_callback(store.close)
        vault = vaults.Vault(store, ring)
        alone = alone and not await store.is_claimed()
        if alone:
            await vault.prepare()
        yield store, vault, alone


async def installation_of(store: Store, account: str | None) -> tuple[InstallationId, str]:
    """Return the installation's number and its account's name."""
    from bot.store import repos

    if account is None:
        return InstallationId(0), "everybody"
    known = await repos.installed_accounts(store)
    for number, name in known.items():
        if account.lower() in (name.lower(), str(number)):
            return number, name
    names = ", ".join(f"{name} ({number})" for number, name in known.items()) or "none so far"
    raise UserError(f"There is no installation {account!r}; known are: {names}.")
