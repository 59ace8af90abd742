"""How a command reaches the vault beside a service that runs, or in its place while none does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bot import settings
from bot.errors import UserError
from bot.models import InstallationId
from bot.settings import database

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.vault import Vault


@asynccontextmanager
async def opened(values: Mapping[str, str], *, writes: bool) -> AsyncIterator[tuple[Store, Vault, bool]]:
    """The store, the vault on it, and whether the data directory is ours alone; refused under a wrong key.

    A command that only looks takes no lock: a service that starts meanwhile must not be turned away. Where there is
    nothing to look at yet, it is given an empty store of its own, and the home stays as it is."""
    from bot import vault as vaults
    from bot.keyring import KeyRing
    from bot.store.base import Store, exists

    where, folder = settings.read_database(values), settings.data_dir(values)
    ring = KeyRing(settings.read_secret_keys(values))
    async with AsyncExitStack() as stack:
        if not writes and not await asyncio.to_thread(exists, where):
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="forgehand-")))
            where, writes = database.in_folder(folder), True
        alone = writes and _is_ours(stack, folder)
        await asyncio.to_thread(vaults.verify, where, ring)
        store = await (Store.open(where, migrate=alone) if writes else Store.open_reader(where))
        stack.push_async_callback(store.close)
        vault = vaults.Vault(store, ring)
        if alone:
            await vault.prepare()
        yield store, vault, alone


def _is_ours(stack: AsyncExitStack, folder: Path) -> bool:
    from bot.store.data_directory import DataDirLock, Occupied

    try:
        stack.enter_context(DataDirLock(folder))
    except Occupied:
        return False
    return True


async def installation_of(store: Store, account: str | None) -> tuple[InstallationId, str]:
    """Its number, and for whom that is in words."""
    from bot.store import repos

    if account is None:
        return InstallationId(0), "everybody"
    known = await repos.installed_accounts(store)
    for number, name in known.items():
        if account.lower() in (name.lower(), str(number)):
            return number, name
    names = ", ".join(f"{name} ({number})" for number, name in known.items()) or "none so far"
    raise UserError(f"There is no installation {account!r}; known are: {names}.")
