"""How often one installation's comments may be edited: a token bucket whose state is stored, as pure arithmetic.

GitHub documents 500 content-generating requests an hour and does not say whether an edit is one. So the bucket fills
at a rate that keeps to that limit, starts with a burst for the first minutes, and keeps a reserve for final states.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

DEPTH = 140.0
PER_SECOND = 0.1
RESERVED_FOR_FINALS = 20.0
LEAST_PAUSE_SECONDS = 75.0
"""After a refusal that names no time to wait."""
LONGEST_PAUSE_SECONDS = 3700.0
"""GitHub counts by the hour: an end further away was noted before the clock was set back."""


@dataclass(frozen=True)
class Allowance:
    tokens: float
    refilled_at: float
    paused_until: float = 0.0

    @classmethod
    def full(cls, now: float) -> Allowance:
        return cls(DEPTH, now)

    def at(self, now: float) -> Allowance:
        """Refilled up to now; a clock that went back takes nothing away."""
        gained = max(0.0, now - self.refilled_at) * PER_SECOND
        return replace(self, tokens=min(DEPTH, self.tokens + gained), refilled_at=now)

    def wait_seconds(self, now: float, *, final: bool) -> float:
        """How long until one more edit may go out; 0 when it may now."""
        if now < self.paused_until < now + LONGEST_PAUSE_SECONDS:
            return self.paused_until - now
        floor = 0.0 if final else RESERVED_FOR_FINALS
        missing = 1.0 - (self.at(now).tokens - floor)
        return max(0.0, missing / PER_SECOND)

    def spent(self, now: float) -> Allowance:
        filled = self.at(now)
        return replace(filled, tokens=max(0.0, filled.tokens - 1.0))

    def refused(self, now: float, retry_after: float | None) -> Allowance:
        return replace(self.at(now), paused_until=now + (retry_after or LEAST_PAUSE_SECONDS))

    def spacing_seconds(self, now: float) -> float:
        """Between two edits of one comment: a second while the bucket is full, up to the refill rate when empty."""
        fill = self.at(now).tokens / DEPTH
        return 1.0 + (1.0 / PER_SECOND - 1.0) * (1.0 - fill) ** 2
