"""Knows how GitHub divides a comment into blocks: text, code, raw HTML, and lines that the page does not show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


class Kind(Enum):
    """What the lines of a block are on the page."""

    TEXT = "text"
    CODE = "code"
    HTML = "html"
    UNSEEN = "unseen"
    """Link definitions (`[//]: # (so)`) and whatever is nested deeper than anybody writes."""


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of the text, from offset to offset; the blocks of a text cover it without gaps."""

    kind: Kind
    start: int
    end: int
    quoted: bool
    """Inside a quote, also as its lazy continuation: the page shows such a line in the quote."""


_LINE_END = re.compile(r"\r\n?|\n")
_ONLY_MARKERS = re.compile(r"[\s>*+\-\d.)=_]*\Z")
_LEAVES = {
    "paragraph_open": Kind.TEXT,
    "heading_open": Kind.TEXT,
    "hr": Kind.TEXT,
    "fence": Kind.CODE,
    "code_block": Kind.CODE,
    "html_block": Kind.HTML,
}


@cache
def _parser() -> MarkdownIt:
    # Imported at the first command word: most deliveries hold none, and the edge must start fast.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])  # only blocks: linear in the length of the text
    return parser


def line_starts(text: str) -> list[int]:
    """The offset of every line, and the end of the text as the last."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    return starts if starts[-1] == len(text) else [*starts, len(text)]


def blocks(text: str) -> list[Block]:
    """The text's blocks in their order."""
    starts = line_starts(text)
    count = len(starts) - 1
    owners: list[tuple[int, Kind] | None] = [None] * count
    quoted = [False] * count
    for number, token in enumerate(_parser().parse(text)):
        if token.map is None:
            continue
        first, last = token.map[0], min(token.map[1], count)
        if token.type == "blockquote_open":
            quoted[first:last] = [True] * (last - first)
        elif token.type in _LEAVES:
            owners[first:last] = [(number, _LEAVES[token.type])] * (last - first)
    return list(_group(text, starts, owners, quoted))


def _group(text: str, starts: list[int], owners: list[tuple[int, Kind] | None], quoted: list[bool]) -> Iterator[Block]:
    def owner(line: int) -> tuple[int, Kind, bool]:
        found = owners[line]
        if found is None:
            shown = _ONLY_MARKERS.match(text, starts[line], starts[line + 1])
            found = (-1, Kind.TEXT if shown else Kind.UNSEEN)
        return (*found, quoted[line])

    for (_, kind, inside), members in groupby(range(len(owners)), key=owner):
        lines = list(members)
        yield Block(kind, starts[lines[0]], starts[lines[-1] + 1], inside)
