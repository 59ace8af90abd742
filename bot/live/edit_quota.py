"""Decide how often and in which order comments are edited: a stored token bucket, and what we know of GitHub's limits.

GitHub documents 80 content-generating requests a minute and 500 an hour, and does not say whether an edit is one. So
an installation begins STRICT, at a rate that keeps to both. If people want more than that for a whole hour, PROBING
tries a little more, slowly, so that a refusal would come after few requests too many. An hour with more than 500 edits
and no refusal shows that edits do not count; then LENIENT holds until a refusal says otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import IntEnum, StrEnum

from bot.models import InstallationId, TurnKey
from bot.store import posts
from bot.store.base import Store
from bot.store.posts import StoredEditQuota as Bucket


class EditPace(StrEnum):
    STRICT = "strict"
    PROBING = "probing"
    LENIENT = "lenient"


LONGEST_REST_SECONDS = 60.0
FIRST_RETRY_SECONDS = 0.5
LATELY_SECONDS = 60.0
FOREVER = float("inf")


@dataclass(frozen=True)
class PaceRule:
    depth: float
    """The size of the bucket, which fills at `per_second`."""
    per_second: float
    most_sessions: int
    """Above so many sessions at work, each is shown only at its start and its end."""


RULES = {
    EditPace.STRICT: PaceRule(140.0, 0.1, 40),
    EditPace.PROBING: PaceRule(140.0, 0.15, 40),
    EditPace.LENIENT: PaceRule(120.0, 0.95, 100),
}
FOR_FINALS = 20.0
"""This part of the bucket is for final states and questions."""
PLENTY = 0.4
"""This share of the bucket stays for live comments when a dashboard has news."""
QUICK_DEPTH = 12.0
QUICK_PER_SECOND = 1.0
QUICK_FOR_FINALS = 10.0
"""So many final states may follow each other at once; other edits are a second apart."""
LEAST_PAUSE_SECONDS = 75.0
"""The pause after a refusal that names no time to wait."""
LONGEST_PAUSE_SECONDS = 3700.0
"""GitHub counts by the hour: a pause that ends later was noted before the clock was set back."""
RECOVERING = 0.7
WINDOW_SECONDS = 3600.0
PROOF_EDITS = 520
"""So many in one hour prove that edits are not content-generating requests."""
TRY_AGAIN_SECONDS = 7 * 24 * 3600.0
"""After a refusal nothing is tried for a week."""


@dataclass(frozen=True)
class EditQuota:
    tokens: float
    refilled_at: float
    paused_until: float = 0.0
    pace: EditPace = EditPace.STRICT
    pace_since: float = 0.0
    """The begin of the present pace, or of its present hour."""
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
        """Refill more slowly in the hour after a refusal, so that GitHub's count of that hour runs down."""
        recovering = self.pace is EditPace.STRICT and 0 < self.refused_at <= now < self.refused_at + WINDOW_SECONDS
        return self.rule.per_second * (RECOVERING if recovering else 1.0)

    def at(self, now: float) -> EditQuota:
        """Refill up to now; a clock that went back takes nothing away."""
        passed = max(0.0, now - self.refilled_at)
        tokens = min(self.rule.depth, self.tokens + passed * self.rate(now))
        quick = min(QUICK_DEPTH, self.quick + passed * QUICK_PER_SECOND)
        return replace(self, tokens=tokens, refilled_at=now, quick=quick)

    def wait_seconds(self, now: float, *, first: bool) -> float:
        """Return the wait for one more; 0 if it may go now. `first`: a final state, a question, a new comment."""
        if now < self.paused_until < now + LONGEST_PAUSE_SECONDS:
            return self.paused_until - now
        filled = self.at(now)
        missing = 1.0 + (0.0 if first else FOR_FINALS) - filled.tokens
        missing_quick = 1.0 + (0.0 if first else QUICK_FOR_FINALS) - filled.quick
        return max(0.0, missing / self.rate(now), missing_quick / QUICK_PER_SECOND)

    def is_plentiful(self, now: float) -> bool:
        """Tell whether so much is left that an edit may go for which nobody waits."""
        return self.wait_seconds(now, first=False) <= 0 and self.at(now).tokens >= PLENTY * self.rule.depth

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
        """Wait as long as GitHub says, then go on at the strict pace with nothing saved up."""
        until = now + (retry_after or LEAST_PAUSE_SECONDS)
        strict = EditQuota(0.0, now, until, EditPace.STRICT, now, 0, refused_at=now, quick=0.0)
        return strict if now >= self.paused_until else replace(self, paused_until=max(until, self.paused_until))

    def spacing_seconds(self, now: float) -> float:
        """Space edits that are not pressing: a second while the bucket is full, the pace of the refill if empty."""
        fill = self.at(now).tokens / self.rule.depth
        return 1.0 + (1.0 / self.rate(now) - 1.0) * (1.0 - fill) ** 2

    def _learnt(self, now: float) -> EditQuota:
        """Go one step up after an hour in which more was wanted and nothing was refused."""
        if self.pace is EditPace.PROBING and self.pace_edits >= PROOF_EDITS:
            return replace(self, pace=EditPace.LENIENT, pace_since=now, pace_edits=0)
        if self.pace is EditPace.LENIENT or 0 <= now - self.pace_since < WINDOW_SECONDS:
            return self
        wanted = self.tokens < 2 * FOR_FINALS and now - self.refused_at >= TRY_AGAIN_SECONDS
        pace = EditPace.PROBING if wanted else self.pace
        return replace(self, pace=pace, pace_since=now, pace_edits=0)


class EditQuotas:
    """Notes what anybody makes, and takes it off the bucket at the next look."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._noted: Counter[InstallationId] = Counter()
        self._changing: defaultdict[InstallationId, asyncio.Lock] = defaultdict(asyncio.Lock)

    def note(self, installation: InstallationId) -> None:
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
        """Take off what was noted, once: a full bucket must not lose it at every look."""
        noted, now = self._noted[installation], self._clock()
        stored = await posts.edit_quota(self._store, installation)
        quota = EditQuota(**asdict(stored) | {"pace": EditPace(stored.pace)}) if stored else EditQuota.full(now)
        if noted:
            quota = quota.spent(now, noted)
            await self._save(installation, quota)
            self._noted[installation] -= noted
        return quota

    async def _save(self, installation: InstallationId, quota: EditQuota) -> None:
        await posts.save_edit_quota(self._store, installation, Bucket(**asdict(quota)))


class Weight(IntEnum):
    """The worth of a change: the heavier goes first, and from PRESSING on it may use what the bucket keeps."""

    NEWS = 0
    PRESSING = 1
    """A question, a wish to stop, a ticked box: somebody waits for what the comment says next."""
    FINAL = 2


@dataclass
class Due:
    weight: Weight = Weight.NEWS
    not_before: float = 0.0
    tries: int = 0

    @property
    def final(self) -> bool:
        return self.weight is Weight.FINAL

    @property
    def first(self) -> bool:
        return self.weight >= Weight.PRESSING


class DueList:
    """Holds at most one entry per turn: only the latest state is written.

    Its clock never jumps: a wall clock that is set back must not silence a comment.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[TurnKey, Due] = {}
        self._last_began = -FOREVER
        self._since: dict[TurnKey, float] = {}
        """The time of the oldest news that a comment does not show."""
        self._held: set[TurnKey] = set()
        self._heard: dict[TurnKey, float] = {}
        self._wake = asyncio.Event()

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, key: TurnKey, weight: Weight = Weight.NEWS) -> None:
        entry = self._entries.setdefault(key, Due())
        entry.weight = max(entry.weight, weight)
        self._heard[key] = self._clock()
        self._since.setdefault(key, self._heard[key])
        self._wake.set()

    def sessions(self) -> int:
        since = self._clock() - LATELY_SECONDS
        self._heard = {key: at for key, at in self._heard.items() if at > since}
        return len(self._heard)

    def forget(self, key: TurnKey) -> None:
        self._heard.pop(key, None)
        self._since.pop(key, None)

    def next(self, now: float, quota: EditQuota) -> tuple[TurnKey, float]:
        """Return the one to write next and the wait before: the weightiest first, then the one with the oldest news."""
        here = self._clock()
        waits = {
            True: quota.wait_seconds(now, first=True),
            False: max(quota.wait_seconds(now, first=False), self._last_began + quota.spacing_seconds(now) - here),
        }

        def wait(key: TurnKey) -> float:
            if key in self._held:
                return LONGEST_REST_SECONDS
            entry = self._entries[key]
            return max(waits[entry.first], entry.not_before - here, 0.0)

        def rank(key: TurnKey) -> tuple[float, int, float]:
            return wait(key), -self._entries[key].weight, self._since.get(key, FOREVER)

        key = min(self._entries, key=rank)
        self._wake.clear()
        return key, wait(key)

    async def wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def take(self, key: TurnKey) -> Due:
        """Take it out to be written; later news is not in it."""
        self._since.pop(key, None)
        return self._entries.pop(key)

    def hold(self, key: TurnKey) -> None:
        """Hold newer news back while it is written, so that they cannot overtake it."""
        self._held.add(key)

    def let_go(self, key: TurnKey) -> None:
        self._held.discard(key)
        self._wake.set()

    def began(self) -> None:
        """Space the next write from the begin of this one, however long this one takes."""
        self._last_began = self._clock()

    def put_back(self, key: TurnKey, entry: Due) -> None:
        known = self._entries.setdefault(key, entry)
        self._since.setdefault(key, self._clock())
        known.weight = max(known.weight, entry.weight)
        known.tries = entry.tries + 1
        known.not_before = self._clock() + min(FIRST_RETRY_SECONDS * 2**known.tries, LONGEST_REST_SECONDS)
