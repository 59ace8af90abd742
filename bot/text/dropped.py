"""Knows what GitHub reads and leaves out of the page: the names of links, and cells past a table's last column."""

from __future__ import annotations

import re

from bot.text import tables
from bot.text.markdown import Kind, blocks
from bot.text.scanner import Form, scan

_DEFINED = re.compile(r"\[((?:[^\[\]\\]|\\.)++)\]:", re.DOTALL)
_NAMED = re.compile(r"\]\[((?:[^\[\]\\]|\\.)*+)\]", re.DOTALL)


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


def _without_further_cells(text: str) -> str:
    parts: list[str] = []
    at = columns = 0
    for row in (leaf for leaf in scan(text) if leaf.form is Form.ROW):
        _, start, end = row.words[0]
        found = tables.cells(text[start:end])
        if row.mark == tables.HEADER:
            columns = len(found)
        elif len(found) > columns:
            parts += (text[at:start], f"| {' | '.join(found[:columns])} |")
            at = end
    return "".join((*parts, text[at:]))
