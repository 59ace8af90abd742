"""Knows what GitHub reads and leaves out of the page: the names of links, and cells past a table's last column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from bot.text.markdown import Kind, blocks, line_starts

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_DEFINED = re.compile(r"\[((?:[^\[\]\\]|\\.)++)\]:", re.DOTALL)
_NAMED = re.compile(r"\]\[((?:[^\[\]\\]|\\.)*+)\]", re.DOTALL)
_BAR = re.compile(r"(?<!\\)\|")
_PREFIX = re.compile(r"[ \t>]*")


def kept(text: str) -> str:
    """The text without these; what is no link and no table to GitHub stays as it is."""
    if "|" in text:
        text = _without_further_cells(text)
    return _without_names(text) if "][" in text else text


def _without_names(text: str) -> str:
    found = blocks(text)
    unseen = (text[block.start : block.end] for block in found if block.kind is Kind.UNSEEN)
    known = {_folded(name) for raw in unseen for name in _DEFINED.findall(raw)}
    if not known:
        return text

    def short(match: re.Match[str]) -> str:
        return "]" if _folded(match[1]) in known else match.group()

    return "".join(
        _NAMED.sub(short, text[block.start : block.end]) if block.kind is Kind.TEXT else text[block.start : block.end]
        for block in found
    )


def _folded(name: str) -> str:
    """As two names are compared."""
    return " ".join(name.split()).casefold()


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _without_further_cells(text: str) -> str:
    starts = line_starts(text)
    parts: list[str] = []
    at = 0
    for line, cells in _rows(text):
        row = text[starts[line] : starts[line + 1]]
        words = row.rstrip("\r\n")
        prefix = _PREFIX.match(words)
        assert prefix is not None
        inside = words[prefix.end() :].strip().removeprefix("|").removesuffix("|")
        if len(_BAR.split(inside)) > len(cells):
            parts += (text[at : starts[line]], prefix[0], f"| {' | '.join(cells)} |", row[len(words) :])
            at = starts[line + 1]
    return "".join((*parts, text[at:]))


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Of all tables: the line that each stands on, and its cells as far as they are shown."""
    line: int | None = None
    cells: list[str] = []
    for token in _parser().parse(text):
        if token.type == "tr_open" and token.map is not None:
            line, cells = token.map[0], []
        elif token.type == "inline" and line is not None:
            cells.append(token.content)
        elif token.type == "tr_close" and line is not None:
            yield line, cells
            line = None
