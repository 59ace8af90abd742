"""The agent's markdown as HTML that may stand in a page: no tag of its own, no image, no link but to the web."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

HEADING = "h3"
"""Those of the page stand above it: it has the title and the turns."""
MOST = 10_000
MOST_BRACKETS = 300
"""Reading them takes time that grows with their square, and many wait for it: more are shown as they are."""
_WEB = re.compile(r"https?://[^/]", re.IGNORECASE)


def prose(text: str) -> Markup:
    """As it reads in a comment. What is HTML in it is shown as text."""
    if len(text) > MOST or text.count("[") > MOST_BRACKETS:
        return Markup('<p class="words">{}</p>').format(text)
    return Markup(_reader()(text))  # noqa: S704 - markdown-it escapes all that is not its own


@functools.cache
def _reader() -> Callable[[str], str]:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    reader.disable(["image", "html_block", "html_inline"])
    reader.validateLink = lambda url: _WEB.match(url) is not None  # type: ignore[method-assign]
    return lambda text: _rendered(reader, text)


def _rendered(reader: MarkdownIt, text: str) -> str:
    tokens = reader.parse(text)
    for block in tokens:
        if block.type in ("heading_open", "heading_close"):
            block.tag = HEADING
        block.attrs.pop("style", None)  # of a table's cell; the page forbids it
        for one in block.children or ():
            _marked(one)
    return str(reader.renderer.render(tokens, reader.options, {}))


def _marked(token: Token) -> None:
    if token.type == "link_open":
        token.attrSet("rel", "noreferrer nofollow")
