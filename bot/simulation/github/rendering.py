"""What GitHub shows of a markdown body: its HTML and its text, hidden parts left out."""

from __future__ import annotations

from html import escape
from html.parser import HTMLParser

SILENT = ("script", "style", "title")


MOST_QUOTED = 50_000
"""Lines of quotes times all lines, as far as the library can be asked: its time grows with their product."""


def html(body: str) -> str:
    if is_flood(body):
        return f"<p>{escape(body)}</p>"
    from markdown_it import MarkdownIt

    return str(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(body))


def is_flood(body: str) -> bool:
    """GitHub reads any text in no time; the library that stands in for it must not hold up those who ask."""
    lines = body.split("\n")
    return sum(">" in line[:40] for line in lines) * len(lines) > MOST_QUOTED or body.count("[") > 2_000


def text(body: str) -> str:
    reader = _Text()
    reader.feed(html(body))
    reader.close()
    return "".join(reader.found).strip()


class _Text(HTMLParser):
    """Keeps text, drops comments, tags and what no browser shows."""

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
