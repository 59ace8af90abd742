"""One line of a check-up: what was checked, whether it is good, and how to fix it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    GOOD = "good"
    WARNING = "warning"
    """It works, but not as it should."""
    BAD = "bad"
    """Sessions will fail, or never start."""


@dataclass(frozen=True)
class CheckupFinding:
    name: str
    level: Level
    words: str
    fix: str = ""
    """The exact next step; empty if there is none."""


def good(name: str, words: str) -> CheckupFinding:
    return CheckupFinding(name, Level.GOOD, words)


def warning(name: str, words: str, fix: str) -> CheckupFinding:
    return CheckupFinding(name, Level.WARNING, words, fix)


def bad(name: str, words: str, fix: str) -> CheckupFinding:
    return CheckupFinding(name, Level.BAD, words, fix)
