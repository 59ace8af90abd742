"""Says how often one installation may write: a stored token bucket, and what was learnt of GitHub's limits.

GitHub documents 80 content-generating requests a minute and 500 an hour, and does not say whether an edit is one. So
an installation begins STRICT, at a rate that keeps to both. Only where people want more than that for a whole hour is
a little more tried (PROBING), slowly, so that a refusal would find few requests too many; an hour with more than 500
edits and no refusal shows that edits do not count, and the LENIENT pace holds until a refusal says otherwise.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from bot.models import InstallationId
from bot.store import comments
from bot.store.base import Store
from bot.store.comments import StoredEditQuota as Bucket


class EditPace(StrEnum):
    STRICT = "strict"
    PROBING = "probing"
    LENIENT = "lenient"


@dataclass(frozen=True)
class PaceRule:
    """A bucket's size and how fast it fills; above so many sessions at work, each is shown at its start and its end."""

    depth: float
    per_second: float
    most_sessions: int


RULES = {
    EditPace.STRICT: PaceRule(140.0, 0.1, 40),
    EditPace.PROBING: PaceRule(140.0, 0.15, 40),
    EditPace.LENIENT: PaceRule(120.0, 0.95, 100),
}
RESERVED = 20.0
"""Of the bucket, for final states and questions."""
QUICK_DEPTH = 12.0
QUICK_PER_SECOND = 1.0
QUICK_RESERVED = 10.0
"""So many final states may follow each other at once; any other edit comes a second after the one before."""
LEAST_PAUSE_SECONDS = 75.0
"""After a refusal that names no time to wait."""
LONGEST_PAUSE_SECONDS = 3700.0
"""GitHub counts by the hour: an end further away was noted before the clock was set back."""
RECOVERING = 0.7
WINDOW_SECONDS = 3600.0
PROOF_EDITS = 520
"""In one hour: more than content-generating requests may be."""
TRY_AGAIN_SECONDS = 7 * 24 * 3600.0
"""After a refusal nothing is tried for a week."""


@dataclass(frozen=True)
class EditQuota:
    tokens: float
    refilled_at: float
    paused_until: float = 0.0
    pace: EditPace = EditPace.STRICT
    pace_since: float = 0.0
    """When the present pace, or its present hour, began."""
    pace_edits: int = 0
    refused_at: float = 0.0
    quick: float = QUICK_DEPTH

    @classmethod
    def full(cls, now: float, pace: EditPace = EditPace.STRICT) -> EditQuota:
        return cls(RULES[pace].depth, now, pace=pace, pace_since=now)

    @property
    def rule(self) -> PaceRule:
        return RULES[self.pace]

    def rate(self, now: float) -> float:
        """Refills slower in the hour after a refusal, so that GitHub's count of that hour runs down."""
        recovering = self.pace is EditPace.STRICT and 0 < self.refused_at <= now < self.refused_at + WINDOW_SECONDS
        return self.rule.per_second * (RECOVERING if recovering else 1.0)

    def at(self, now: float) -> EditQuota:
        """Refilled up to now; a clock that went back takes nothing away."""
        passed = max(0.0, now - self.refilled_at)
        tokens = min(self.rule.depth, self.tokens + passed * self.rate(now))
        return replace(
            self, tokens=tokens, refilled_at=now, quick=min(QUICK_DEPTH, self.quick + passed * QUICK_PER_SECOND)
        )

    def wait_seconds(self, now: float, *, first: bool) -> float:
        """Returns the wait for one more; 0 when it may go now. `first`: a final state, a question, a new comment."""
        if now < self.paused_until < now + LONGEST_PAUSE_SECONDS:
            return self.paused_until - now
        filled = self.at(now)
        missing = 1.0 + (0.0 if first else RESERVED) - filled.tokens
        missing_quick = 1.0 + (0.0 if first else QUICK_RESERVED) - filled.quick
        return max(0.0, missing / self.rate(now), missing_quick / QUICK_PER_SECOND)

    def spent(self, now: float, count: int = 1) -> EditQuota:
        filled = self.at(now)
        taken = replace(
            filled,
            tokens=max(0.0, filled.tokens - count),
            quick=max(0.0, filled.quick - count),
            pace_edits=filled.pace_edits + count,
        )
        return taken._learnt(now)

    def refused(self, now: float, retry_after: float | None) -> EditQuota:
        """Wait as long as GitHub says, and go on at the strict pace with nothing saved up."""
        until = now + (retry_after or LEAST_PAUSE_SECONDS)
        strict = EditQuota(0.0, now, until, EditPace.STRICT, now, 0, refused_at=now, quick=0.0)
        return strict if now >= self.paused_until else replace(self, paused_until=max(until, self.paused_until))

    def spacing_seconds(self, now: float) -> float:
        """Between two edits that are not pressing: a second while the bucket is full, the refill's pace when empty."""
        fill = self.at(now).tokens / self.rule.depth
        return 1.0 + (1.0 / self.rate(now) - 1.0) * (1.0 - fill) ** 2

    def _learnt(self, now: float) -> EditQuota:
        """One step up, where an hour is over in which more was wanted and nothing was refused."""
        if self.pace is EditPace.PROBING and self.pace_edits >= PROOF_EDITS:
            return replace(self, pace=EditPace.LENIENT, pace_since=now, pace_edits=0)
        if self.pace is EditPace.LENIENT or 0 <= now - self.pace_since < WINDOW_SECONDS:
            return self
        wanted = self.tokens < 2 * RESERVED and now - self.refused_at >= TRY_AGAIN_SECONDS
        pace = EditPace.PROBING if wanted else self.pace
        return replace(self, pace=pace, pace_since=now, pace_edits=0)


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
            quota = await self._settled(installation)
            await self._save(installation, quota.spent(self._clock()))

    async def refused(self, installation: InstallationId, retry_after: float | None) -> None:
        """Pause for as long as GitHub said; a failure that names no time is not a refusal."""
        if retry_after is not None:
            async with self._changing[installation]:
                quota = await self._settled(installation)
                await self._save(installation, quota.refused(self._clock(), retry_after))

    async def _settled(self, installation: InstallationId) -> EditQuota:
        """Takes off what was noted, once: what is taken off a full bucket at every look never comes back."""
        noted, now = self._noted[installation], self._clock()
        quota = _stored(await comments.edit_quota(self._store, installation), now)
        if noted:
            quota = quota.spent(now, noted)
            await self._save(installation, quota)
            self._noted[installation] -= noted
        return quota

    async def _save(self, installation: InstallationId, quota: EditQuota) -> None:
        await comments.save_edit_quota(self._store, installation, Bucket(**asdict(quota)))


def _stored(stored: Bucket | None, now: float) -> EditQuota:
    return EditQuota(**{**asdict(stored), "pace": EditPace(stored.pace)}) if stored else EditQuota.full(now)
