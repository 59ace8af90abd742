"""Knows what the blocks of a comment are to its reader: text, code, raw HTML, and lines that the page does not show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from bot.text.lines import line_starts
from bot.text.scanner import Form, Leaf, scan


class Kind(Enum):
    """What the lines of a block are on the page."""

    TEXT = "text"
    CODE = "code"
    HTML = "html"
    UNSEEN = "unseen"
    """Link definitions (`[//]: # (so)`) and whatever is nested deeper, or longer, than anybody writes."""


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of the text, from offset to offset; the blocks of a text cover it without gaps."""

    kind: Kind
    start: int
    end: int
    quoted: bool
    """Inside a quote, also as its lazy continuation: the page shows such a line in the quote."""


_ONLY_MARKERS = re.compile(r"(?:[\s>*+\-\d.)=_]|\[\^[^\]\s]++\]:)*+\Z")
_KINDS = {
    Form.FENCE: Kind.CODE,
    Form.CODE: Kind.CODE,
    Form.HTML: Kind.HTML,
    Form.DEFINITION: Kind.UNSEEN,
    Form.DEEP: Kind.UNSEEN,
}


def blocks(text: str) -> list[Block]:
    """The text's blocks in their order."""
    starts = line_starts(text)
    owners: list[Leaf | None] = [None] * (len(starts) - 1)
    for leaf in scan(text):
        owners[leaf.first : leaf.last] = [leaf] * (leaf.last - leaf.first)
    return list(_group(text, starts, owners))


def _group(text: str, starts: list[int], owners: list[Leaf | None]) -> Iterator[Block]:
    def owner(line: int) -> tuple[int, Kind, bool]:
        leaf = owners[line]
        if leaf is not None:
            return leaf.first, _KINDS.get(leaf.form, Kind.TEXT), leaf.quoted
        shown = _ONLY_MARKERS.match(text, starts[line], starts[line + 1])
        return -1, Kind.TEXT if shown else Kind.UNSEEN, False

    for (_, kind, quoted), members in groupby(range(len(owners)), key=owner):
        lines = list(members)
        yield Block(kind, starts[lines[0]], starts[lines[-1] + 1], quoted)
