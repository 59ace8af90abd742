"""Tells whether two findings are the same, also after lines have moved or the words have changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
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
        return self.path == other.path and (self.words == other.words or self._is_alike_at_same_code(other))

    def is_dismissed_by(self, other: Fingerprint) -> bool:
        """Compare with a finding that people dismissed. Other code may be a bug, and so may the same code in another
        file: there all words must be equal, and more than a few."""
        if self.path == other.path and self._is_alike_at_same_code(other):
            return True
        is_near = self.path == other.path or bool(self.code_sha256 and self.code_sha256 == other.code_sha256)
        return is_near and self.words == other.words and len(self.words) >= ENOUGH_WORDS

    def is_dismissed_in(self, config: Sequence[ForPaths]) -> bool:
        """Decide whether the finding has all words of a dismissal that the config holds for its path."""
        for one in config:
            wanted = frozenset(re.findall(r"\w+", one.words.lower()))
            if len(wanted) >= LEAST_WORDS and matches(self.path, one.pattern) and wanted <= self._different:
                return True
        return False

    def _is_alike_at_same_code(self, other: Fingerprint) -> bool:
        if not self.code_sha256 or self.code_sha256 != other.code_sha256:
            return False
        mine, theirs = self._different, other._different
        return len(mine & theirs) / max(1, min(len(mine), len(theirs))) >= ALIKE
