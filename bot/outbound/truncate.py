"""Shortens Markdown to GitHub's limits at a line's end, closing what the cut would leave open, and says so."""

from __future__ import annotations

import re

from bot.outbound import prose

BODY_LIMIT = 65_536
CHECK_LIMIT = 65_535
TITLE_LIMIT = 256
NOTE = "*… cut here: GitHub takes no longer text.*"
_LONG_LINE = 2_000
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
        room -= excess
    return _head(note, limit)


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
    closers = _fence_end(lines)
    text = "\n".join((*lines, *closers))
    return "\n\n".join((text, *["</details>"] * _open_folds(lines), note))


def _fence_end(lines: list[str]) -> list[str]:
    found = _blocks(lines)
    if found and found[-1].kind == "fence" and found[-1].end == len(lines) and not prose.is_closed(found[-1], lines):
        return [found[-1].markup]
    return []


def _open_folds(lines: list[str]) -> int:
    code = {at for part in _blocks(lines) if part.kind in ("fence", "code") for at in range(part.start, part.end)}
    tags = [tag.lower() for at, line in enumerate(lines) if at not in code for tag in _FOLD.findall(line)]
    return max(0, sum(1 if tag.startswith("<d") else -1 for tag in tags))


def _blocks(lines: list[str]) -> list[prose.Block]:
    try:
        return prose.blocks("\n".join(lines))
    except prose.TooDeep:
        return []
