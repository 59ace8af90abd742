"""GitHub as one account's installation meets it: its allowances by the stand-in's rules, our edits by the product's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from bot.live.edit_quota import FOR_FINALS, EditQuota
from bot.simulation.github.auth import Credential, Refusal
from bot.simulation.github.limits import Limits
from tests.capacity import figures
from tests.capacity.day import HOUR

WHO = Credential()
"""The stand-in counts by credential; each account has limits of its own here."""


def allowance(repositories: int) -> int:
    """The requests an hour that GitHub grants an installation."""
    more = figures.MORE_A_REPOSITORY.value * max(0, repositories - 20)
    return int(min(figures.MOST_REQUESTS.value, figures.REQUESTS_AN_HOUR.value + more))


class Account:
    def __init__(self, repositories: int, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.allowed = allowance(repositories)
        self._limits = Limits(clock, anonymous_per_hour=self.allowed)
        self.quota = EditQuota.full(clock())
        self.due: dict[str, float] = {}
        """Since when each turn's comment waits, the oldest first."""
        self.finals: dict[str, float] = {}
        """The same for turns that have ended, whose comments go first."""
        self.at_work = 0
        self.requests: Counter[str] = Counter()
        """By the end of the hour that GitHub counts."""
        self.content: Counter[int] = Counter()
        self.refused = 0

    def ask(self, count: int) -> float:
        """Make so many requests; return the seconds to wait if the allowance is used up."""
        try:
            window = self._limits.take(WHO, count)["X-RateLimit-Reset"]
        except Refusal as refusal:
            self.refused += 1
            return max(1.0, float(refusal.headers["X-RateLimit-Reset"]) - self._clock())
        self.requests[window] += count
        return 0.0

    def create(self) -> float:
        """Create a comment or a pull request; return the seconds to wait if there were too many."""
        if wait := self.ask(1):
            return wait
        try:
            self._limits.create(WHO)
        except Refusal as refusal:
            self.refused += 1
            wait = float(refusal.headers["Retry-After"])
            self.quota = self.quota.refused(self._clock(), wait)
            return wait
        self.content[int(self._clock() // HOUR)] += 1
        self.quota = self.quota.spent(self._clock())
        return 0.0

    def edit_once(self) -> float:
        """Edit a comment for the last time; return the seconds to wait if the allowance is used up."""
        if wait := self.ask(1):
            return wait
        self.quota = self.quota.spent(self._clock())
        return 0.0

    def edit(self, seconds: float) -> None:
        """Edit the comments of all that is at work, as often in this time as the edit quota permits."""
        now = self._clock()
        wanted = int(self.at_work * figures.WANTED_EDITS.value * seconds / 60)
        if not wanted or self.at_work > self.quota.rule.most_sessions or now < self.quota.paused_until:
            return
        count = max(0, min(wanted, int(self.quota.at(now).tokens - FOR_FINALS)))
        if count and not self.ask(count):
            self.quota = self.quota.spent(now, count)
