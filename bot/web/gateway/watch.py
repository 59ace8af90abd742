"""What the operator learns of the gateway: counts by reason, and lines in the log, each once in a while."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable

from bot.web.gateway.errors import Refusal

log = logging.getLogger("bot.web.gateway")

COMPLAINT_SECONDS = 600.0
MOST_MISUSES = 40
"""Refused requests of one token that no well-behaved program sends; then it is cut off."""
MOST_REMEMBERED = 10_000
MOST_NAMED = 50
"""Names from agents that are logged, each once: whoever makes up others fills no log."""
MISUSE = frozenset({"encoded", "feature", "field", "malformed", "model", "smuggled", "stalled", "too_large"})
STORM = "storm"


class Watch:
    """One for each gateway."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.refusals: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        """What requests went on without: betas and fields."""
        self._clock = clock
        self._complained: OrderedDict[tuple[object, str], float] = OrderedDict()
        self._misuses: OrderedDict[str, int] = OrderedDict()
        self._named: set[str] = set()

    def refused(self, refusal: Refusal) -> None:
        self.refusals[refusal.reason] += 1
        log.info("gateway refused a request", extra={"reason": refusal.reason, "status": refusal.status})
        if refusal.reason == "field":
            self.complain("field", "an agent's request was refused", refusal.message)

    def misused(self, token_sha256: str, refusal: Refusal) -> bool:
        """Whether the token is to be cut off now."""
        if refusal.reason not in MISUSE:
            return False
        count = self._misuses.pop(token_sha256, 0) + 1
        self._misuses[token_sha256] = count
        _bound(self._misuses)
        return count >= MOST_MISUSES

    def without(self, kind: str, names: Iterable[str]) -> None:
        """`kind` is `beta`, `field` or `query`; the names come from the agent, and so never become a label."""
        for name in names:
            self.left_out[kind] += 1
            if name not in self._named and len(self._named) < MOST_NAMED:
                self._named.add(name)
                words = "the %s %r was left out of a request, because nobody knows what it costs; %s lets it through"
                log.warning(words, kind, name[:80], "FORGEHAND_GATEWAY_ALLOW")

    def complain(self, about: object, what: str, detail: str) -> None:
        """Every request of every session meets the same trouble."""
        now = self._clock()
        if now - self._complained.get((about, what), float("-inf")) < COMPLAINT_SECONDS:
            return
        self._complained[about, what] = now
        _bound(self._complained)
        log.error("%s (%s): %s", what, about, detail)


def cut_off() -> Refusal:
    words = "The gateway has refused dozens of this turn's requests, so its token was cut off. Start the turn again."
    return Refusal(403, STORM, words)


def _bound(kept: OrderedDict[object, object] | OrderedDict[str, int] | OrderedDict[tuple[object, str], float]) -> None:
    while len(kept) > MOST_REMEMBERED:
        kept.popitem(last=False)
