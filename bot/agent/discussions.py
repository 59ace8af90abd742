"""The discussions in a diff that a turn is asked about: the names the agent knows them by, and what it says of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bot.models import Spot

MOST = 50
_LINE = re.compile(
    r"[\s>*_`#-]{0,8}D(\d{1,3})\b[*_`]{0,3}[ \t]*+(?:\((open|done)\))?[*_`]{0,3}[ \t]*+:[ \t*_`]*+(.*)",
    re.IGNORECASE,
)
"""However it is dressed as markdown."""


class DiscussionState(StrEnum):
    """How the agent says that a discussion stands; where it says nothing, the change tells."""

    OPEN = "open"
    DONE = "done"
    UNSAID = ""


@dataclass(frozen=True)
class DiscussionAnswer:
    words: str
    standing: DiscussionState


def name(number: int) -> str:
    """Counted from 1."""
    return f"D{number}"


def place(spot: Spot) -> str:
    """Names the place; no line is known once it is gone from the diff, or where it was said of the whole file."""
    if spot.line is None:
        return spot.path
    lines = f"lines {spot.start_line} to {spot.line}" if spot.start_line else f"line {spot.line}"
    return f"{lines} of {spot.path}{' as it was before' if spot.older else ''}"


def distinct(spots: Iterable[Spot]) -> list[Spot]:
    """Each discussion once, in the order of asking."""
    found: dict[int, Spot] = {}
    for spot in spots:
        found.setdefault(spot.comment_id, spot)
    return list(found.values())[:MOST]


def answers(text: str) -> dict[int, DiscussionAnswer]:
    """Reads the answers by number: each begins with a discussion's name and goes up to a blank line."""
    words: dict[int, list[str]] = {}
    standing: dict[int, DiscussionState] = {}
    at: int | None = None
    for line in text.splitlines():
        if match := _LINE.match(line):
            at = int(match[1])
            words[at], standing[at] = [match[3].strip()], DiscussionState((match[2] or "").lower())
        elif at is not None and line.strip():
            words[at].append(line.strip())
        else:
            at = None
    return {one: DiscussionAnswer("\n".join(said).strip(), standing[one]) for one, said in words.items()}


def is_settled(spot: Spot, answer: DiscussionAnswer | None, changed: Sequence[str]) -> bool:
    """A pushed change settles it: the agent says so, or says nothing against it and the file was touched."""
    standing = answer.standing if answer else DiscussionState.UNSAID
    return standing is DiscussionState.DONE or (standing is DiscussionState.UNSAID and spot.path in changed)
