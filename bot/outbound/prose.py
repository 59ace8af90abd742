"""Tells prose from code in Markdown, as GitHub does, and shortens a text to GitHub's limits at a line's end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from bot.text.blocks import row_cells
from bot.text.markup import Block, BlockMeaning, InlineMark, code_spans, pieces
from bot.text.scanner import BlockForm, Leaf, content, margin, scan

CODE = "\0x\0"
"""Stands for inline code: not part of a word beside it, and a word to what looks across it."""
_CELL = re.compile(r"(?<!\\)\|")
_INDENTED = re.compile(r"(?:[ >*+.)\d-]*+\t)++")
_TAB = 4


class TooDeep(Exception):
    """Nested deeper, or longer, than the scanner looks, so that it cannot say what is code."""


def blocks(text: str) -> list[Leaf]:
    """The blocks in order; lines between them are empty or belong to a container."""
    found = scan(text)
    if any(leaf.form is BlockForm.DEEP for leaf in found):
        raise TooDeep
    return found


def live_texts(text: str, leaves: Sequence[Leaf]) -> Iterator[str]:
    """All of it that is not code: what GitHub looks through for mentions and references."""
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
    """Whether there is no address in it that may swallow a backtick: that depends on what is a link, which takes all of
    GitHub's reader to know."""
    return "`" not in words or list(code_spans(words)) == list(code_spans(words, addresses=False))


def outside_spans(text: str, change: Callable[[str], str]) -> str:
    """Change what stands outside of inline code; all of it where that cannot be told for sure."""
    if not _is_sure(text):
        return change(text)
    parts: list[str] = []
    at = 0
    for start, end in code_spans(text):
        parts += (change(text[at:start]), text[start:end])
        at = end
    return "".join((*parts, change(text[at:])))


def outside_spans_of_cells(text: str, change: Callable[[str], str]) -> str:
    """A cell ends at its bar even within backticks."""
    return "|".join(outside_spans(cell, change) for cell in _CELL.split(text))


def closing(leaves: Sequence[Leaf]) -> str | None:
    """The line that ends a fence which runs on past the end of the text."""
    if not leaves or not leaves[-1].runs_on:
        return None
    return margin(leaves[-1].within) + leaves[-1].mark


def without_tabs(text: str, leaves: Sequence[Leaf]) -> str:
    """With spaces for the tabs that lines are indented by: a tab is as wide as the place where it comes to stand, and
    what is code here must be code behind a mark of quotation. In a fence of its own a tab means nothing but itself."""
    fenced = {at for leaf in leaves if _stands_alone(leaf) for at in range(leaf.first + 1, leaf.last)}
    lines = text.split("\n")
    return "\n".join(line if at in fenced else _indented(line) for at, line in enumerate(lines))


def _stands_alone(leaf: Leaf) -> bool:
    return leaf.form is BlockForm.FENCE and leaf.within is None


def _indented(line: str) -> str:
    found = _INDENTED.match(line)
    return found[0].expandtabs(_TAB) + line[found.end() :] if found else line


BODY_LIMIT = 65_536
CHECK_LIMIT = 65_535
TITLE_LIMIT = 256
NOTE = "*… cut here: GitHub takes no longer text.*"
MOST_LINES = 2_000
"""Of a text that stands among others in a comment: what follows a longer one, boxes too, must still be read."""
_LONG_LINE = 2_000
_TRIES = 4
_WIDEST = 16
"""No sign becomes longer than this when it is made harmless."""
_FOLD = re.compile(r"<details(?: open)?>|</details>", re.IGNORECASE)


def size(text: str) -> int:
    """GitHub's unit is not documented: UTF-16 units are never fewer than characters."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def truncate(text: str, limit: int = BODY_LIMIT, note: str = NOTE) -> str:
    """The text itself where it fits."""
    if size(text) <= limit:
        return text
    room = limit - size(note) - 2
    while room > 0:
        ended = _ended(_first_lines(text, room), note)
        excess = size(ended) - limit
        if excess <= 0:
            return ended
        room -= max(excess, room // 16)  # each try reads all of it: there must not be many
    return _head(note, limit)


def fitted(text: str, limit: int, made: Callable[[str], str], note: str = NOTE) -> str:
    """What is made of the text, of as much of it as fits. Making lengthens, and a cut can open what was closed: so the
    cut comes first."""
    room = limit
    for _ in range(_TRIES):
        out = made(truncate(text, room, note))
        if size(out) <= limit:
            return out
        room = int(room * 0.95 * limit / size(out))
    return made(truncate(text, limit // _WIDEST, note))


def lines(text: str, most: int = MOST_LINES, note: str = NOTE) -> str:
    """Its first lines, where there are more."""
    return text if text.count("\n") < most else _ended(text.split("\n", most)[:most], note)


def title(text: str, limit: int = TITLE_LIMIT) -> str:
    """One line."""
    line = " ".join(text.split())
    return line if size(line) <= limit else _head(line, limit - 1).rstrip() + "…"


def _head(text: str, room: int) -> str:
    """So many units from its beginning, no character halved."""
    return text.encode("utf-16-le", "surrogatepass")[: 2 * room].decode("utf-16-le", "ignore")


def _first_lines(text: str, room: int) -> list[str]:
    """Whole lines; of a very long one its beginning, since a page without line breaks would vanish otherwise."""
    *lines, last = _head(text, room).split("\n")
    if len(last) > _LONG_LINE:
        lines.append(last.rpartition(" ")[0] or last)
    return lines


def _ended(lines: list[str], note: str) -> str:
    leaves = _blocks(lines)
    end = closing(leaves)
    text = "\n".join(lines if end is None else (*lines, end))
    return "\n\n".join((text, *["</details>"] * _open_folds(lines, leaves), note))


def _open_folds(lines: list[str], leaves: list[Leaf]) -> int:
    fenced = (leaf for leaf in leaves if leaf.form in (BlockForm.FENCE, BlockForm.CODE))
    code = {at for leaf in fenced for at in range(leaf.first, leaf.last)}
    tags = [tag.lower() for at, line in enumerate(lines) if at not in code for tag in _FOLD.findall(line)]
    return max(0, sum(1 if tag.startswith("<d") else -1 for tag in tags))


def _blocks(lines: list[str]) -> list[Leaf]:
    try:
        return blocks("\n".join(lines))
    except TooDeep:
        return []
