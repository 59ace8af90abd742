"""The allowance of each installation as it is stored, spent and paused, whoever writes."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict

from bot.live.allowance import EditPace, EditQuota
from bot.models import InstallationId
from bot.store import bucket
from bot.store.base import Store
from bot.store.bucket import Bucket


class EditQuotas:
    """What anybody makes is noted, and taken off at the next look."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._noted: Counter[InstallationId] = Counter()
        self._changing: defaultdict[InstallationId, asyncio.Lock] = defaultdict(asyncio.Lock)

    def note(self, installation: InstallationId) -> None:
        """Something was made there: a comment, a pull request, an answer."""
        self._noted[installation] += 1

    async def look(self, installation: InstallationId) -> EditQuota:
        async with self._changing[installation]:
            return await self._settled(installation)

    async def spend(self, installation: InstallationId) -> None:
        async with self._changing[installation]:
            allowance = await self._settled(installation)
            await self._save(installation, allowance.spent(self._clock()))

    async def refused(self, installation: InstallationId, retry_after: float | None) -> None:
        """Pause for as long as GitHub said; a failure that names no time is not a refusal."""
        if retry_after is not None:
            async with self._changing[installation]:
                allowance = await self._settled(installation)
                await self._save(installation, allowance.refused(self._clock(), retry_after))

    async def _settled(self, installation: InstallationId) -> EditQuota:
        """With what was noted taken off, once: what is taken off a full bucket at every look never comes back."""
        noted, now = self._noted[installation], self._clock()
        allowance = _of(await bucket.read(self._store, installation), now)
        if noted:
            allowance = allowance.spent(now, noted)
            await self._save(installation, allowance)
            self._noted[installation] -= noted
        return allowance

    async def _save(self, installation: InstallationId, allowance: EditQuota) -> None:
        await bucket.save(self._store, installation, Bucket(**asdict(allowance)))


def _of(stored: Bucket | None, now: float) -> EditQuota:
    return EditQuota(**{**asdict(stored), "pace": EditPace(stored.pace)}) if stored else EditQuota.full(now)
