"""The allowance of each installation as it is stored, spent and paused."""

from __future__ import annotations

from collections.abc import Callable

from bot.live.allowance import Allowance
from bot.models import InstallationId
from bot.store import bucket
from bot.store.base import Store


class Purse:
    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    async def look(self, installation: InstallationId) -> Allowance:
        stored = await bucket.read(self._store, installation)
        return Allowance(*stored) if stored else Allowance.full(self._clock())

    async def spend(self, installation: InstallationId) -> None:
        await self._save(installation, (await self.look(installation)).spent(self._clock()))

    async def refused(self, installation: InstallationId, retry_after: float | None) -> None:
        """Pause for as long as GitHub said; a failure that names no time is not a refusal."""
        if retry_after is not None:
            allowance = (await self.look(installation)).refused(self._clock(), retry_after)
            await self._save(installation, allowance)

    async def _save(self, installation: InstallationId, allowance: Allowance) -> None:
        await bucket.save(self._store, installation, (allowance.tokens, allowance.refilled_at, allowance.paused_until))
