"""One line of a check-up: what was looked at, how it stands, and the way to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    GOOD = "good"
    WARNING = "warning"
    """It works, but not as it should."""
    BAD = "bad"
    """Sessions will fail, or never begin."""


@dataclass(frozen=True)
class CheckupFinding:
    name: str
    level: Level
    words: str
    fix: str = ""
    """What to do, exactly; empty where there is nothing."""


def good(name: str, words: str) -> CheckupFinding:
    return CheckupFinding(name, Level.GOOD, words)


def warning(name: str, words: str, fix: str) -> CheckupFinding:
    return CheckupFinding(name, Level.WARNING, words, fix)


def bad(name: str, words: str, fix: str) -> CheckupFinding:
    return CheckupFinding(name, Level.BAD, words, fix)
