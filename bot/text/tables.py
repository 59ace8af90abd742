"""Knows the rows of GitHub's tables: where a cell ends, and what makes a line the beginning of a table."""

from __future__ import annotations

import re

_BAR = re.compile(r"(?<!\\)\|")
HEADER, DELIMITERS = "header", "delimiters"
"""What the first two rows of a table are called."""
_DELIMITER = r"[ \t]*+:?-++:?[ \t]*+"
_DELIMITERS = re.compile(rf"\|?{_DELIMITER}(?:\|{_DELIMITER})*+\|?[ \t]*+\Z")
_ALIGNED = re.compile(r"[|:]")


def cells(row: str) -> list[str]:
    """The cells of a row, without the blanks around them; the bars at both ends may be left out."""
    found = [cell.strip(" \t") for cell in _BAR.split(row.strip(" \t"))]
    if found and not found[0]:
        del found[0]
    if found and not found[-1]:
        del found[-1]
    return found


def begins(header: str, below: str) -> bool:
    """Whether the second line makes the first one the header of a table."""
    if not (_ALIGNED.search(below) and _DELIMITERS.match(below)):
        return False
    many = len(cells(below))
    return many > 0 and len(cells(header)) == many
