"""GitHub's limits for each credential: requests an hour, new content a minute and an hour."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from bot.simulation.github.auth import Credential, Refusal
from bot.simulation.github.state import Clock

SECONDARY = (
    "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. "
    "Please retry your request again later."
)


@dataclass
class Bucket:
    reset: float
    used: int = 0


@dataclass
class Limits:
    """Limits that may be changed while the server runs."""

    clock: Clock
    requests_per_hour: int = 5000
    anonymous_per_hour: int = 60
    content_per_minute: int = 80
    content_per_hour: int = 500
    retry_after: int = 60
    edits_count: bool = False
    """An edit counts as content. GitHub does not say, so we must survive both."""
    _buckets: dict[str, Bucket] = field(default_factory=dict)
    _content: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def take(self, credential: Credential, cost: int = 1) -> dict[str, str]:
        """Count a request, and return the headers of every answer; 403 if none are left."""
        bucket, limit = self._bucket(credential), self._limit(credential)
        if cost and bucket.used >= limit:
            raise Refusal(403, f"API rate limit exceeded for {owner(credential)}.", headers=headers(bucket, limit))
        bucket.used += cost
        return headers(bucket, limit)

    def give_back(self, credential: Credential) -> None:
        """Refund a request, because `304 Not Modified` is free."""
        self._bucket(credential).used -= 1

    def create(self, credential: Credential) -> None:
        """Count a new comment, pull request or review; raise the secondary limit if there were too many."""
        now = self.clock()
        recent = [at for at in self._content[owner(credential)] if at > now - 3600]
        if len(recent) >= self.content_per_hour or (
            sum(1 for at in recent if at > now - 60) >= self.content_per_minute
        ):
            raise Refusal(403, SECONDARY, headers={"Retry-After": str(self.retry_after)})
        self._content[owner(credential)] = [*recent, now]

    def edit(self, credential: Credential) -> None:
        """Count an edit of a comment if edits count."""
        if self.edits_count:
            self.create(credential)

    def _limit(self, credential: Credential) -> int:
        return self.anonymous_per_hour if credential.kind == "none" else self.requests_per_hour

    def _bucket(self, credential: Credential) -> Bucket:
        name, now = owner(credential), self.clock()
        bucket = self._buckets.get(name)
        if bucket is None or bucket.reset <= now:
            bucket = self._buckets[name] = Bucket(now + 3600)
        return bucket


def owner(credential: Credential) -> str:
    if credential.token:
        return f"installation ID {credential.token.installation.id}"
    if credential.user:
        return f"user ID {credential.user.id}"
    return f"app ID {credential.app.id}" if credential.app else "127.0.0.1"


def headers(bucket: Bucket, limit: int) -> dict[str, str]:
    return {
        "X-RateLimit-Limit": str(limit),
        "X-RateLimit-Remaining": str(max(0, limit - bucket.used)),
        "X-RateLimit-Used": str(bucket.used),
        "X-RateLimit-Reset": str(int(bucket.reset)),
        "X-RateLimit-Resource": "core",
    }
