"""Tells whether two findings are the same, also after lines have moved or the words have changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from bot.proposal.push_policy import matches
from bot.repo_config.values import ForPaths

ALIKE = 0.5
"""Two findings at the same code are one if they share at least this part of their words."""
MOST_WORDS = 600
ENOUGH_WORDS = 8
"""So many equal words mean the same finding, also if its code has changed since it was dismissed."""
LEAST_WORDS = 2
"""A dismissal in the config with fewer words would hide too much, so only the agent reads it."""


class Likeness(Enum):
    """How a finding is like one that people dismissed."""

    SAME = auto()
    """In the same words at the same code."""
    ALIKE = auto()
    """In other words at the same code. It may be another finding if it is graver, or if the code stands there twice."""
    ELSEWHERE = auto()
    """In the same words at other code, or in another file. It is another one if the dismissed code is still there."""


@dataclass(frozen=True)
class Fingerprint:
    """Identifies a finding without its line number, by its code without indentation."""

    path: str
    code_sha256: str
    """Empty if nobody could read the code."""
    body: str

    @cached_property
    def words(self) -> list[str]:
        """Read them only when they are compared, which is rare: most findings are in different files."""
        return re.findall(r"\w+", self.body.lower())[:MOST_WORDS]

    @cached_property
    def _different(self) -> frozenset[str]:
        return frozenset(self.words)

    def is_same(self, other: Fingerprint) -> bool:
        """Compare two findings of one pull request."""
        if self.path != other.path:
            return False
        return self.words == other.words or (self._is_at_the_code_of(other) and self._is_alike(other))

    def likeness(self, dismissed: Fingerprint) -> Likeness | None:
        """Compare with a finding that people dismissed; None if it is another one."""
        is_here, is_code = self.path == dismissed.path, self._is_at_the_code_of(dismissed)
        if is_here and is_code and self._is_alike(dismissed):
            return Likeness.SAME if self.words == dismissed.words else Likeness.ALIKE
        if (is_here or is_code) and self.words == dismissed.words and len(self.words) >= ENOUGH_WORDS:
            return Likeness.ELSEWHERE
        return None

    def is_dismissed_in(self, config: Sequence[ForPaths]) -> bool:
        """Decide whether the finding has all words of a dismissal that the config holds for its path."""
        for one in config:
            wanted = frozenset(re.findall(r"\w+", one.words.lower()))
            if len(wanted) >= LEAST_WORDS and matches(self.path, one.pattern) and wanted <= self._different:
                return True
        return False

    def _is_at_the_code_of(self, other: Fingerprint) -> bool:
        return bool(self.code_sha256) and self.code_sha256 == other.code_sha256

    def _is_alike(self, other: Fingerprint) -> bool:
        mine, theirs = self._different, other._different
        return len(mine & theirs) / max(1, min(len(mine), len(theirs))) >= ALIKE
