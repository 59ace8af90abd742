"""Find words that differ by one slip of the finger."""

from __future__ import annotations


def is_near(word: str, known: str) -> bool:
    """Decide whether the words are the same, or one letter was added, lost, changed or swapped with its neighbour."""
    if abs(len(word) - len(known)) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(word, known, strict=False)) if a != b), min(len(word), len(known)))
    left, right = word[at:], known[at:]
    swapped = left[1::-1] + left[2:] if len(left) > 1 else left
    return right in (left, left[1:], swapped) or left[1:] == right[1:] or left == right[1:]
