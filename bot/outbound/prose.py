"""Where in Markdown code stands and where prose, as GitHub will see it; built on a real parser, not on guesses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

DEEPEST = 60
CODE = "\0x\0"
"""Stands for inline code: not part of a word beside it, and a word to what looks across it."""
_SPAN = re.compile(r"(?<![\\`])(?:\\\\)*(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_CELL = re.compile(r"(?<!\\)\|")
_FENCE_END = re.compile(r"[ >\t]*(`{3,}|~{3,})[ \t]*\Z")
_UNUSED = ("emphasis", "link", "image", "autolink", "entity", "balance_pairs", "text_join", "fragments_join")


@dataclass(frozen=True)
class Block:
    """Lines [start, end) of a text."""

    start: int
    end: int
    kind: str
    """fence, code (indented), html, row (of a table) or prose."""
    info: str = ""
    markup: str = ""


class TooDeep(Exception):
    """Nested deeper than the parser looks, so that it cannot say what is code."""


@lru_cache(maxsize=2)
def _parser(whole: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": DEEPEST}).enable("table").disable(list(_UNUSED))
    return parser if whole else parser.disable(["reference", "inline"])


def blocks(text: str) -> list[Block]:
    """The blocks in order; lines between them are empty or belong to a container."""
    found: list[Block] = []
    in_table = 0
    for token in _tokens(text, whole=False):
        in_table += (token.type == "table_open") - (token.type == "table_close")
        block = _block(token, in_table > 0)
        if block and (not found or found[-1].start != block.start):
            found.append(block)
    return found


def _tokens(text: str, *, whole: bool) -> list[Token]:
    tokens = _parser(whole).parse(text)
    if any(token.level >= DEEPEST - 5 for token in tokens):
        raise TooDeep
    return tokens


def _block(token: Token, in_table: bool) -> Block | None:
    if token.map is None:
        return None
    start, end = token.map
    kinds = {"fence": "fence", "code_block": "code", "html_block": "html", "inline": "row" if in_table else "prose"}
    kind = kinds.get(token.type)
    return Block(start, end, kind, token.info, token.markup) if kind else None


def live_texts(text: str) -> Iterator[str]:
    """All that is not code: what GitHub looks through for mentions and references."""
    for token in _tokens(text, whole=True):
        if token.type == "html_block":
            yield token.content
        elif token.type == "inline":
            children = token.children or []
            yield "".join(CODE if child.type == "code_inline" else _source(child) for child in children)


def _source(child: Token) -> str:
    if child.type in ("softbreak", "hardbreak"):
        return "\n"
    return child.markup if child.type == "text_special" else child.content


def outside_spans(text: str, change: Callable[[str], str]) -> str:
    """Change what stands outside of inline code."""
    parts: list[str] = []
    at = 0
    for match in _SPAN.finditer(text):
        parts += (change(text[at : match.start(1)]), text[match.start(1) : match.end()])
        at = match.end()
    return "".join((*parts, change(text[at:])))


def outside_spans_of_cells(text: str, change: Callable[[str], str]) -> str:
    """A cell ends at its bar even within backticks."""
    return "|".join(outside_spans(cell, change) for cell in _CELL.split(text))


def is_closed(block: Block, lines: list[str]) -> bool:
    """Whether a fence has its end; one that has not runs on to the end of what it stands in."""
    closing = _FENCE_END.match(lines[block.end - 1])
    return block.end - block.start > 1 and closing is not None and closing[1].startswith(block.markup)
