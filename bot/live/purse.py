"""The allowance of each installation as it is stored, spent and paused, whoever writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict

from bot.live.allowance import Allowance, Pace
from bot.models import InstallationId
from bot.store import bucket
from bot.store.base import Store
from bot.store.bucket import Bucket


class Purse:
    """Its stored rows are written by one writer an installation; what others make is noted, and counted then."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._noted: Counter[InstallationId] = Counter()

    def note(self, installation: InstallationId) -> None:
        """Something was made there: a comment, a pull request, an answer."""
        self._noted[installation] += 1

    async def look(self, installation: InstallationId) -> Allowance:
        stored, now = await bucket.read(self._store, installation), self._clock()
        allowance = _of(stored, now)
        noted = self._noted[installation]
        return allowance.spent(now, noted) if noted else allowance

    async def spend(self, installation: InstallationId) -> None:
        now = self._clock()
        noted = self._noted.pop(installation, 0)
        allowance = _of(await bucket.read(self._store, installation), now).spent(now, 1 + noted)
        await self._save(installation, allowance)

    async def refused(self, installation: InstallationId, retry_after: float | None) -> None:
        """Pause for as long as GitHub said; a failure that names no time is not a refusal."""
        if retry_after is not None:
            allowance = (await self.look(installation)).refused(self._clock(), retry_after)
            await self._save(installation, allowance)

    async def _save(self, installation: InstallationId, allowance: Allowance) -> None:
        await bucket.save(self._store, installation, Bucket(**asdict(allowance)))


def _of(stored: Bucket | None, now: float) -> Allowance:
    return Allowance(**{**asdict(stored), "pace": Pace(stored.pace)}) if stored else Allowance.full(now)
