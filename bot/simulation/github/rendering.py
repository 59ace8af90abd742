"""What GitHub shows of a markdown body: its HTML and its text, hidden parts left out."""

from __future__ import annotations

from html.parser import HTMLParser

SILENT = ("script", "style", "title")


def html(body: str) -> str:
    from markdown_it import MarkdownIt

    return str(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(body))


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
