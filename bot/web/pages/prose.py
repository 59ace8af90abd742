"""Renders the agent's markdown as safe HTML: only our own tags, no images, links only to the web."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile

from markupsafe import Markup, escape

from bot.text.blocks import DELIMITERS, HEADER
from bot.text.blocks import row_cells as cells_of
from bot.text.scanner import Around, BlockForm, Container, Leaf, content, scan
from bot.web.pages import inline

HEADING = "h3"
"""Below the page's own headings, which are for the title and the turns."""
MOST = 10_000


def prose(text: str) -> Markup:
    """Render it as in a comment, but show HTML as text."""
    if len(text) > MOST:
        return Markup('<p class="words">{}</p>').format(text)
    return Markup(rendered(text))  # noqa: S704 - all that is not our own is escaped


def rendered(text: str) -> str:
    return _Page(text, scan(text)).html()


class _Page:
    def __init__(self, text: str, leaves: Sequence[Leaf]) -> None:
        self._text = text
        self._leaves = leaves
        self._parts: list[str] = []
        self._around: list[Container] = []
        self._loose = _loose(leaves)
        self._columns = 0

    def html(self) -> str:
        for at, leaf in enumerate(self._leaves):
            self._enter(_path(leaf))
            if leaf.form is BlockForm.ROW:
                after = self._leaves[at + 1] if at + 1 < len(self._leaves) else None
                self._row(leaf, ends=after is None or after.form is not BlockForm.ROW or after.mark == HEADER)
            else:
                self._parts.append(self._block(leaf))
        self._enter([])
        return "".join(self._parts)

    def _enter(self, path: Sequence[Container]) -> None:
        """Close the containers that end here, and open those that begin."""
        same = _common(self._around, path)
        for at in range(len(self._around) - 1, same - 1, -1):
            follows = path[at] if at == same and at < len(path) else None
            self._parts.append(_end(self._around[at], follows))
        for at in range(same, len(path)):
            before = self._around[at] if at == same and at < len(self._around) else None
            self._parts.append(_begin(path[at], before))
        self._around = list(path)

    def _block(self, leaf: Leaf) -> str:
        words = content(self._text, leaf)
        match leaf.form:
            case BlockForm.HEADING:
                text = words.rstrip(" \t").rstrip("#") if leaf.mark.startswith("#") else words
                return f"<{HEADING}>{inline.rendered(text.strip())}</{HEADING}>\n"
            case BlockForm.RULE:
                return "<hr />\n"
            case BlockForm.FENCE | BlockForm.CODE:
                language = (leaf.info.split() or [""])[0]
                named = f' class="language-{escape(language)}"' if language else ""
                return f"<pre><code{named}>{escape(words)}\n</code></pre>\n"
            case BlockForm.PARAGRAPH:
                shown = inline.rendered(words.strip())
            case _:
                shown = str(escape(words)).replace("\n", "<br />\n")
        tight = leaf.within is not None and leaf.within.kind is Around.ITEM and _list(leaf.within) not in self._loose
        return shown if tight else f"<p>{shown}</p>\n"

    def _row(self, leaf: Leaf, *, ends: bool) -> None:
        cells = cells_of(content(self._text, leaf))
        if leaf.mark == HEADER:
            self._columns = len(cells)
            self._parts.append(f"<table>\n<thead>\n{_cells(cells, 'th')}</thead>\n")
        elif leaf.mark == DELIMITERS:
            self._parts.append("<tbody>\n")
        else:
            self._parts.append(_cells([*cells[: self._columns], *[""] * (self._columns - len(cells))], "td"))
        if ends:
            self._parts.append("</tbody>\n</table>\n")


def _cells(cells: Sequence[str], tag: str) -> str:
    shown = "".join(f"<{tag}>{inline.rendered(cell)}</{tag}>\n" for cell in cells)
    return f"<tr>\n{shown}</tr>\n"


def _path(leaf: Leaf) -> list[Container]:
    """List the containers around a leaf, the outermost first."""
    found: list[Container] = []
    one = leaf.within
    while one is not None:
        found.append(one)
        one = one.parent
    return found[::-1]


def _common(one: Sequence[Container], other: Sequence[Container]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(one, other, strict=False)))


def _begin(one: Container, before: Container | None) -> str:
    if one.kind is not Around.ITEM:
        return "<blockquote>\n"
    if before is not None and _is_next(before, one):
        return "<li>"
    if one.number is None:
        return "<ul>\n<li>"
    return f'<ol start="{one.number}">\n<li>' if one.number != 1 else "<ol>\n<li>"


def _end(one: Container, follows: Container | None) -> str:
    if one.kind is not Around.ITEM:
        return "</blockquote>\n"
    if follows is not None and _is_next(one, follows):
        return "</li>\n"
    return "</li>\n</ul>\n" if one.number is None else "</li>\n</ol>\n"


def _is_next(one: Container, other: Container) -> bool:
    """Check that both are items of the same list."""
    return one.kind is other.kind is Around.ITEM and one.mark == other.mark and one.parent is other.parent


def _list(item: Container) -> tuple[Container | None, str]:
    return item.parent, item.mark


def _loose(leaves: Sequence[Leaf]) -> set[tuple[Container | None, str]]:
    """Find the lists with an empty line in them, whose items are paragraphs."""
    found: set[tuple[Container | None, str]] = set()
    for one, other in pairwise(leaves):
        if other.first <= one.last:
            continue
        here, there = _path(one), _path(other)
        same = _common(here, there)
        inner = here[same - 1] if same else None
        if len(here) > same < len(there) and _is_next(here[same], there[same]):
            found.add(_list(here[same]))
        elif inner is not None and inner.kind is Around.ITEM:
            found.add(_list(inner))
    return found
