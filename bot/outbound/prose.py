"""Tell prose from code in Markdown, as GitHub does, and shorten a text to GitHub's limits at a line's end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from bot.text.blocks import row_cells
from bot.text.markup import Block, BlockMeaning, InlineMark, code_spans, pieces
from bot.text.scanner import BlockForm, Leaf, content, margin, scan

CODE = "\0x\0"
"""Stands for inline code, as a separate word."""
BODY_LIMIT = 65_536
CHECK_LIMIT = 65_535
TITLE_LIMIT = 256
NOTE = "*… cut here: GitHub takes no longer text.*"
MOST_LINES = 2_000
"""The most lines of one text in a comment: what follows it, boxes too, must still be read."""
_LONG_LINE = 2_000
_TRIES = 4
_WIDEST = 16
"""Making a sign harmless lengthens it at most so much."""
_TAB = 4
_CELL = re.compile(r"(?<!\\)\|")
_INDENTED = re.compile(r"(?:[ >*+.)\d-]*+\t)++")
_FOLD = re.compile(r"<details(?: open)?>|</details>", re.IGNORECASE)


class TooDeep(Exception):
    """The text is longer or nested deeper than the scanner looks, so it cannot say what is code."""


def blocks(text: str) -> list[Leaf]:
    """Return the blocks in order; lines between them are empty or belong to a container."""
    found = scan(text)
    if any(leaf.form is BlockForm.DEEP for leaf in found):
        raise TooDeep
    return found


def live_texts(text: str, leaves: Sequence[Leaf]) -> Iterator[str]:
    """Yield what is not code: GitHub looks there for mentions and references."""
    for leaf in leaves:
        words = content(text, leaf)
        if leaf.form in (BlockForm.HTML, BlockForm.DEFINITION):
            yield words
        elif leaf.form is BlockForm.ROW:
            yield from map(_live, row_cells(words))
        elif leaf.form not in (BlockForm.FENCE, BlockForm.CODE):
            yield _live(words)


def _live(words: str) -> str:
    if not _is_sure(words):
        return words
    found = pieces(words, Block(BlockMeaning.TEXT, 0, len(words), quoted=False))
    return "".join(CODE if one.mark is InlineMark.CODE else words[one.start : one.end] for one in found)


def _is_sure(words: str) -> bool:
    """Decide whether no address may swallow a backtick: only GitHub's whole reader knows what is a link."""
    return "`" not in words or list(code_spans(words)) == list(code_spans(words, addresses=False))


def outside_spans(text: str, change: Callable[[str], str]) -> str:
    """Change what stands outside of inline code; if that is unsure, change all."""
    if not _is_sure(text):
        return change(text)
    parts: list[str] = []
    at = 0
    for start, end in code_spans(text):
        parts += (change(text[at:start]), text[start:end])
        at = end
    return "".join((*parts, change(text[at:])))


def outside_spans_of_cells(text: str, change: Callable[[str], str]) -> str:
    """Do so for each cell, which ends at its bar even within backticks."""
    return "|".join(outside_spans(cell, change) for cell in _CELL.split(text))


def closing(leaves: Sequence[Leaf]) -> str | None:
    """Return the line that ends a fence which the text leaves open."""
    if not leaves or not leaves[-1].runs_on:
        return None
    return margin(leaves[-1].within) + leaves[-1].mark


def without_tabs(text: str, leaves: Sequence[Leaf]) -> str:
    """Indent lines by spaces instead of tabs: a tab is as wide as its place, and what is code here must be code behind
    a mark of quotation. In a fence that stands alone a tab only means itself."""
    alone = (leaf for leaf in leaves if leaf.form is BlockForm.FENCE and leaf.within is None)
    fenced = {at for leaf in alone for at in range(leaf.first + 1, leaf.last)}
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if at not in fenced and (found := _INDENTED.match(line)):
            lines[at] = found[0].expandtabs(_TAB) + line[found.end() :]
    return "\n".join(lines)


def size(text: str) -> int:
    """Count UTF-16 units, never fewer than characters: GitHub does not document its unit."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def truncate(text: str, limit: int = BODY_LIMIT, note: str = NOTE) -> str:
    if size(text) <= limit:
        return text
    room = limit - size(note) - 2
    while room > 0:
        *lines, last = _head(text, room).split("\n")
        if len(last) > _LONG_LINE:  # else a page without line breaks would vanish
            lines.append(last.rpartition(" ")[0] or last)
        ended = _ended(lines, note)
        excess = size(ended) - limit
        if excess <= 0:
            return ended
        room -= max(excess, room // 16)  # each try reads all of it: there must not be many
    return _head(note, limit)


def fitted(text: str, limit: int, made: Callable[[str], str], note: str = NOTE) -> str:
    """Make something of as much of the text as fits. Making lengthens it, and a cut can open what was closed, so the
    cut comes first."""
    room = limit
    for _ in range(_TRIES):
        out = made(truncate(text, room, note))
        if size(out) <= limit:
            return out
        room = int(room * 0.95 * limit / size(out))
    return made(truncate(text, limit // _WIDEST, note))


def lines(text: str, most: int = MOST_LINES, note: str = NOTE) -> str:
    """Return its first lines, with a note if there are more."""
    return text if text.count("\n") < most else _ended(text.split("\n", most)[:most], note)


def title(text: str, limit: int = TITLE_LIMIT) -> str:
    line = " ".join(text.split())
    return line if size(line) <= limit else _head(line, limit - 1).rstrip() + "…"


def _head(text: str, room: int) -> str:
    """Return so many units from its beginning, with no character halved."""
    return text.encode("utf-16-le", "surrogatepass")[: 2 * room].decode("utf-16-le", "ignore")


def _ended(lines: list[str], note: str) -> str:
    """Close the fence and the folds that the lines leave open, and add the note."""
    try:
        leaves = blocks("\n".join(lines))
    except TooDeep:
        leaves = []
    end = closing(leaves)
    fenced = (leaf for leaf in leaves if leaf.form in (BlockForm.FENCE, BlockForm.CODE))
    code = {at for leaf in fenced for at in range(leaf.first, leaf.last)}
    tags = [tag.lower() for at, line in enumerate(lines) if at not in code for tag in _FOLD.findall(line)]
    open_folds = max(0, sum(1 if tag.startswith("<d") else -1 for tag in tags))
    text = "\n".join(lines if end is None else (*lines, end))
    return "\n\n".join((text, *["</details>"] * open_folds, note))
