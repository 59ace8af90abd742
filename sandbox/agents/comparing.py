"""What two texts have in common, line by line, in a time that their makers cannot choose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

EFFORT = 200_000
"""Steps at most: pairs of equal lines, times the pieces into which they may fall. Some 30 ms."""

Block = tuple[int, int, int]
"""Where it begins in the old lines and in the new ones, and how many lines are the same."""


def blocks(old: Sequence[str], new: Sequence[str], effort: int = EFFORT) -> list[Block] | None:
    """Runs of the same lines, in order; None where the middle, between equal heads and tails, takes too long."""
    head = _head(old, new)
    tail = _head(old[head:][::-1], new[head:][::-1])
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    if _steps(left, right) > effort:
        return None
    matching = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
    middle = [(head + one.a, head + one.b, one.size) for one in matching if one.size]
    ends = [(0, 0, head), *middle, (len(old) - tail, len(new) - tail, tail)]
    return [one for one in ends if one[2]]


def same(old: Sequence[str], new: Sequence[str], effort: int = EFFORT) -> int:
    """How many lines are in both; where that takes too long, whatever their order."""
    found = blocks(old, new, effort)
    return sum(size for *_, size in found) if found is not None else (Counter(old) & Counter(new)).total()


def _steps(left: Sequence[str], right: Sequence[str]) -> int:
    counts = Counter(right)
    pairs = sum(counts[line] for line in left)
    return (len(left) + len(right) + pairs) * min(len(left), len(right))


def _head(old: Sequence[str], new: Sequence[str]) -> int:
    return next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
