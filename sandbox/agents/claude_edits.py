"""Which lines of which file an editing tool of Claude Code changes, counted from what the call says."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from sandbox.agents.claude_titles import PATHS, title
from sandbox.agents.text import same_around

WRITING = frozenset(("Edit", "MultiEdit", "Write", "NotebookEdit"))
FEW_LINES = 30
"""Of which every one may be compared with every other, in an edit of one of so many pieces."""
FEW_EDITS = 50

Edit = tuple[str, int, int]
"""Path within the checkout, lines added, lines removed."""


def edit(tool: str, tool_input: dict[str, Any], cwd: str) -> Edit | None:
    """None for a tool that changes no file, or a call that names none."""
    if tool not in WRITING or not isinstance(tool_input.get(PATHS[tool]), str):
        return None
    pairs = _pairs(tool_input)
    counts = [_counts(*pair, few=FEW_LINES if len(pairs) <= FEW_EDITS else 0) for pair in pairs]
    return title(tool, tool_input, cwd), sum(added for added, _ in counts), sum(removed for _, removed in counts)


def _pairs(tool_input: dict[str, Any]) -> list[tuple[str, str]]:
    """(before, after) of each piece; a file that is written as a whole has no before that the call would tell."""
    edits = tool_input.get("edits")
    if isinstance(edits, list):
        return [_pair(one, "new_string") for one in edits if isinstance(one, dict)]
    name = next((name for name in ("new_string", "content", "new_source") if name in tool_input), "new_string")
    return [_pair(tool_input, name)]


def _pair(piece: dict[str, Any], name: str) -> tuple[str, str]:
    before, after = piece.get("old_string"), piece.get(name)
    return before if isinstance(before, str) else "", after if isinstance(after, str) else ""


def _counts(before: str, after: str, few: int) -> tuple[int, int]:
    old, new = before.splitlines(), after.splitlines()
    begin, end = same_around(old, new)
    old, new = old[begin : len(old) - end], new[begin : len(new) - end]
    same = _most_alike(old, new) if max(len(old), len(new)) <= few else _in_order(_places(old, new))
    return len(new) - same, len(old) - same


def _most_alike(old: Sequence[str], new: Sequence[str]) -> int:
    return sum(block.size for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())


def _places(old: Sequence[str], new: Sequence[str]) -> Iterator[int]:
    """Where in the new text each line of the old one stands: the first of several that are alike at the first."""
    places: dict[str, deque[int]] = defaultdict(deque)
    for at, line in enumerate(new):
        places[line].append(at)
    return (places[line].popleft() for line in old if places.get(line))


def _in_order(places: Iterable[int]) -> int:
    """How many of them follow each other: nearly the most that could be found, which may take the cube of the lines."""
    ends: list[int] = []
    for place in places:
        at = bisect_left(ends, place)
        ends[at : at + 1] = [place]
    return len(ends)
