"""Renders a markdown body as GitHub does: as HTML, and as text without hidden parts."""

from __future__ import annotations

from html import escape
from html.parser import HTMLParser

SILENT = ("script", "style", "title")


MOST_QUOTED = 50_000
"""The most quoted lines times all lines, because the library's time grows with that product."""


def html(body: str) -> str:
    if is_flood(body):
        return f"<p>{escape(body)}</p>"
    from markdown_it import MarkdownIt

    return str(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(body))


def is_flood(body: str) -> bool:
    """Recognise a text that takes the library too long; GitHub reads any text quickly."""
    lines = body.split("\n")
    return sum(">" in line[:40] for line in lines) * len(lines) > MOST_QUOTED or body.count("[") > 2_000


def text(body: str) -> str:
    reader = _Text()
    reader.feed(html(body))
    reader.close()
    return "".join(reader.found).strip()


class _Text(HTMLParser):
    """Collects the text, without comments, tags and elements that no browser shows."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in SILENT

    def handle_endtag(self, tag: str) -> None:
        if tag in SILENT and self._silent:
            self._silent -= 1

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.found.append(data)
