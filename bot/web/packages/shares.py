"""Shares out what all sessions have in common: connections to registries, and room for large indexes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class PackageShares:
    """Lets at most so many of an owner's requests through at a time; the others wait for their turn."""

    def __init__(self, *, of_account: int, of_token: int) -> None:
        self._most = {"account": of_account, "token": of_token}
        self._known: WeakValueDictionary[tuple[str, str], asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def place(self, account: str, token: str) -> AsyncIterator[None]:
        """A token waits in its own line first, so that one session cannot take all of its account's places."""
        async with self._line("token", token), self._line("account", account):
            yield

    def _line(self, kind: str, owner: str) -> asyncio.Semaphore:
        found = self._known.get((kind, owner))
        if found is None:
            found = self._known[kind, owner] = asyncio.Semaphore(self._most[kind])
        return found
