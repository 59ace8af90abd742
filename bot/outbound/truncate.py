"""Shortens Markdown to GitHub's limits at a line's end, closing what the cut would leave open, and says so."""

from __future__ import annotations

import re
from collections.abc import Callable

from bot.outbound import prose
from bot.text.scanner import Form, Leaf

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
    end = prose.closing(leaves)
    text = "\n".join(lines if end is None else (*lines, end))
    return "\n\n".join((text, *["</details>"] * _open_folds(lines, leaves), note))


def _open_folds(lines: list[str], leaves: list[Leaf]) -> int:
    fenced = (leaf for leaf in leaves if leaf.form in (Form.FENCE, Form.CODE))
    code = {at for leaf in fenced for at in range(leaf.first, leaf.last)}
    tags = [tag.lower() for at, line in enumerate(lines) if at not in code for tag in _FOLD.findall(line)]
    return max(0, sum(1 if tag.startswith("<d") else -1 for tag in tags))


def _blocks(lines: list[str]) -> list[Leaf]:
    try:
        return prose.blocks("\n".join(lines))
    except prose.TooDeep:
        return []
