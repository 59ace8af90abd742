"""Recognises where blocks of words begin and end: headings, code, raw HTML, tables, link definitions."""

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


_BAR = re.compile(r"(?<!\\)\|")
HEADER, DELIMITERS = "header", "delimiters"
"""What the first two rows of a table are called."""
_DELIMITER = r"[ \t]*+:?-++:?[ \t]*+"
_DELIMITERS = re.compile(rf"\|?{_DELIMITER}(?:\|{_DELIMITER})*+\|?[ \t]*+\Z")
_ALIGNED = re.compile(r"[|:]")


def row_cells(row: str) -> list[str]:
    """The cells of a row, without the blanks around them; the bars at both ends may be left out."""
    found = [cell.strip(" \t") for cell in _BAR.split(row.strip(" \t"))]
    if found and not found[0]:
        del found[0]
    if found and not found[-1]:
        del found[-1]
    return found


def begins(header: str, below: str) -> bool:
    """Whether the second line makes the first one the header of a table."""
    if not (_ALIGNED.search(below) and _DELIMITERS.match(below)):
        return False
    many = len(row_cells(below))
    return many > 0 and len(row_cells(header)) == many


LONGEST_NAME = 999
_NAME = re.compile(rf"\[((?:[^\[\]\\]|\\.){{1,{LONGEST_NAME}}}+)\]:", re.DOTALL)
_GAP = re.compile(r"[ \t]*+(?:\n[ \t]*+)?+")
_ADDRESS = re.compile(r"<(?:[^<>\\\n]|\\.)*+>|(?!<)[^\s\x00-\x1f\x7f]++")
_TITLES = {
    '"': re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL),
    "'": re.compile(r"'(?:[^'\\]|\\.)*+'", re.DOTALL),
    "(": re.compile(r"\((?:[^()\\]|\\.)*+\)", re.DOTALL),
}
_LINE_END = re.compile(r"[ \t]*+(?:\n|\Z)")


def leading(text: str) -> list[int]:
    """Where each definition ends that the text of a paragraph begins with: behind its last line."""
    reader, found, at = _Reader(text), [], 0
    while (end := reader.definition(at)) is not None:
        found.append(end)
        at = end
    return found


class _Reader:
    """Remembers which titles never end, so that none is looked for twice."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._endless: set[str] = set()

    def definition(self, at: int) -> int | None:
        if not (name := _NAME.match(self._text, at)) or not name[1].strip():
            return None
        gap = _GAP.match(self._text, name.end())
        address = _ADDRESS.match(self._text, gap.end()) if gap else None
        if address is None or not _balanced(address[0]):
            return None
        plain = _LINE_END.match(self._text, address.end())
        return self._titled(address.end()) or (plain.end() if plain else None)

    def _titled(self, at: int) -> int | None:
        gap = _GAP.match(self._text, at)
        if gap is None or gap.end() == at:
            return None
        sign = self._text[gap.end() : gap.end() + 1]
        if sign not in _TITLES or sign in self._endless:
            return None
        title = _TITLES[sign].match(self._text, gap.end())
        if title is None:
            if sign != "(":  # which another one ends as well
                self._endless.add(sign)
            return None
        end = _LINE_END.match(self._text, title.end())
        return end.end() if end else None


def _balanced(address: str) -> bool:
    """An address without angle brackets has its parentheses in pairs."""
    if address.startswith("<") or not ("(" in address or ")" in address):
        return True
    depth = 0
    for sign in re.findall(r"\\.|[()]", address):
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return False
    return depth == 0
