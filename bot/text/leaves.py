"""Knows how the blocks begin and end that hold words: headings, code, raw HTML, lines across the page."""

from __future__ import annotations

import re

HEADING = re.compile(r"#{1,6}(?=[ \t]|\Z)")
UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*\Z")
RULE = re.compile(r"([-_*])[ \t]*+(?:\1[ \t]*+){2,}+\Z")
FENCE = re.compile(r"(`{3,}(?=[^`]*\Z)|~{3,})(.*)", re.DOTALL)
ITEM = re.compile(r"(?:[-+*]|(\d{1,9})[.)])(?=[ \t]|\Z)")
NOTE = re.compile(r"\[\^([^\]\s]+)\]:[ \t]*")

_NAMES = (
    *("address", "article", "aside", "base", "basefont", "blockquote", "body", "caption", "center", "col", "colgroup"),
    *("dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form"),
    *("frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "html", "iframe", "legend"),
    *("li", "link", "main", "menu", "menuitem", "nav", "noframes", "ol", "optgroup", "option", "p", "param", "search"),
    *("section", "source", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "title", "tr", "track", "ul"),
)
_ATTRIBUTE = r"""[ \t]++[A-Za-z_:][A-Za-z0-9_.:-]*+(?:[ \t]*+=[ \t]*+(?:[^\s"'=<>`]++|'[^']*+'|"[^"]*+"))?+"""
ALONE = re.compile(rf"<(?:[A-Za-z][A-Za-z0-9-]*+(?:{_ATTRIBUTE})*+[ \t]*+/?+|/[A-Za-z][A-Za-z0-9-]*+[ \t]*+)>[ \t]*\Z")
"""Any whole tag with nothing behind it. Possessive: it is tried one way only."""
BLANK = re.compile(r"\Z")
"""What ends raw HTML that goes on to the next empty line."""
_HTML = (
    (re.compile(r"<(?:script|pre|style|textarea)(?=[ \t>]|\Z)", re.IGNORECASE | re.ASCII), None),
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<\?"), re.compile(r"\?>")),
    (re.compile(r"<![A-Za-z]"), re.compile(r">")),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
    (re.compile(rf"</?(?:{'|'.join(_NAMES)})(?=[ \t]|/?>|\Z)", re.IGNORECASE | re.ASCII), BLANK),
)
_CODE_END = re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE | re.ASCII)


def html_end(text: str, start: int, end: int, *, alone: bool) -> re.Pattern[str] | None:
    """What will end the raw HTML that begins here, if any does; `alone`: also a tag of any name."""
    for begins, ends in _HTML:
        if begins.match(text, start, end):
            return ends or _CODE_END
    return BLANK if alone and ALONE.match(text, start, end) else None


def closes(text: str, start: int, end: int, fence: str) -> bool:
    """Whether these words are the end of a fence."""
    words = text[start:end].rstrip(" \t")
    return len(words) >= len(fence) and words == fence[0] * len(words)
