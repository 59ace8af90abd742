"""Recognise where blocks begin and end (headings, code, HTML, tables), and read a line in columns."""

from __future__ import annotations

import re
import unicodedata

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
"""A whole tag with nothing behind it. Possessive: it is tried one way only."""
BLANK = re.compile(r"\Z")
"""The end of raw HTML that goes on to the next empty line."""
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
    """Return the end of the raw HTML that begins here, if any does; `alone`: also of a tag of any name."""
    for begins, ends in _HTML:
        if begins.match(text, start, end):
            return ends or _CODE_END
    return BLANK if alone and ALONE.match(text, start, end) else None


def closes(text: str, start: int, end: int, fence: str) -> bool:
    """Decide whether these words end a fence."""
    words = text[start:end].rstrip(" \t")
    return len(words) >= len(fence) and words == fence[0] * len(words)


_BAR = re.compile(r"(?<!\\)\|")
HEADER, DELIMITERS = "header", "delimiters"
"""The marks of the first two rows of a table."""
_DELIMITER = r"[ \t]*+:?-++:?[ \t]*+"
_DELIMITERS = re.compile(rf"\|?{_DELIMITER}(?:\|{_DELIMITER})*+\|?[ \t]*+\Z")
_ALIGNED = re.compile(r"[|:]")


def row_cells(row: str) -> list[str]:
    """Return the cells of a row, stripped; the bars at both ends may be left out."""
    found = [cell.strip(" \t") for cell in _BAR.split(row.strip(" \t"))]
    if found and not found[0]:
        del found[0]
    if found and not found[-1]:
        del found[-1]
    return found


def begins(header: str, below: str) -> bool:
    """Decide whether the second line makes the first one the header of a table."""
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
    """Return the end of each definition at the start of a paragraph, behind its last line."""
    reader, found, at = _Reader(text), [], 0
    while (end := reader.definition(at)) is not None:
        found.append(end)
        at = end
    return found


class _Reader:
    """Remembers which titles never end, so that it looks for none twice."""

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
    """Decide whether the parentheses of an address without angle brackets are in pairs."""
    if address.startswith("<") or not ("(" in address or ")" in address):
        return True
    depth = 0
    for sign in re.findall(r"\\.|[()]", address):
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return False
    return depth == 0


LINE_END = re.compile(r"\r\n?|\n")
_BLANKS = re.compile(r"[ \t]*")
TAB = 4


def line_starts(text: str) -> list[int]:
    """Return the offset of every line, and the end of the text as the last."""
    starts = [0, *(match.end() for match in LINE_END.finditer(text))]
    return starts if starts[-1] == len(text) else [*starts, len(text)]


class LineReader:
    """The rest of one line, from `at` (in column `column`) to `end`."""

    __slots__ = ("at", "column", "end", "indent", "number", "text", "word")

    def __init__(self, text: str, number: int, start: int, end: int) -> None:
        self.text, self.number, self.at, self.column = text, number, start, 0
        while end > start and text[end - 1] in "\r\n":
            end -= 1
        self.end = end
        self._look()

    def _look(self) -> None:
        """Find the next word and its indentation."""
        match = _BLANKS.match(self.text, self.at, self.end)
        assert match is not None
        self.word = match.end()
        self.indent = self.word - self.at
        if "\t" in match[0]:
            column = self.column
            for sign in match[0]:
                column += TAB - column % TAB if sign == "\t" else 1
            self.indent = column - self.column

    @property
    def is_blank(self) -> bool:
        return self.word == self.end

    def skip(self, columns: int) -> None:
        """Skip white space, at most so many columns; of a tab perhaps only a part."""
        while columns > 0 and self.at < self.word:
            width = TAB - self.column % TAB if self.text[self.at] == "\t" else 1
            step = min(columns, width)
            self.column += step
            columns -= step
            self.at += step == width
        self._look()

    def pass_to(self, offset: int) -> None:
        """Go on behind what was read, which holds no tab."""
        self.column += self.indent + offset - self.word
        self.at = offset
        self._look()

    def rest(self) -> tuple[int, int]:
        """Return the spaces that a tab leaves over at the beginning, and the offset at which the text goes on."""
        if self.at < self.end and self.text[self.at] == "\t" and self.column % TAB:
            return TAB - self.column % TAB, self.at + 1
        return 0, self.at


_NOT_PLAIN = re.compile(r"[^\n\t\x20-\x7e]")
_TERMINAL = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor
    r"|(?:\x1b[]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, clipboard
    r"|\x1b[ -/]*[0-~]?"
)
_BREAK = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_UNSEEN_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co"))
_SIGNS = frozenset(map(chr, (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD)))
"""In category Cf, yet drawn on the page."""
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065\u3164\uffa0")
"""Letters and marks, by category, that draw nothing."""
_IGNORABLE = (range(0xFE00, 0xFE10), range(0xE0000, 0xE1000), range(0xFFF0, 0xFFF9))
_KEYCAPS = frozenset("#*0123456789")
_EMOJI_PUNCTUATION = frozenset("‼⁉〰")


def plain(text: str) -> str:
    """Leave out characters that draw nothing: for names, titles and as the last step for the rest."""
    return _NOT_PLAIN.sub(_drawn, _TERMINAL.sub("", text))


def shown(text: str) -> str:
    """Do so, with every kind of line break as a newline: for texts that we publish."""
    return plain(_BREAK.sub("\n", text))


def _drawn(match: re.Match[str]) -> str:
    letter, text, at = match.group(), match.string, match.start()
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if letter == "\r":
        return "\r" if after == "\n" else "\n"
    category = unicodedata.category(letter)
    if category in ("Zl", "Zp"):
        return "\n"
    if letter in "\u200c\u200d":
        return letter if _joins(before, after) else ""
    if letter in "\ufe0e\ufe0f":
        return letter if _varies(before, after) else ""
    if letter in _SIGNS:
        return letter
    if category in _UNSEEN_CATEGORIES or letter in _BLANK_LETTERS or any(ord(letter) in one for one in _IGNORABLE):
        return ""
    return " " if letter == "\u2800" else letter


def _joins(before: str, after: str) -> bool:
    """Decide whether a joiner stands between emoji, or between letters of scripts whose spelling needs it."""
    if not before or not after:
        return False
    if before == "\ufe0f" or unicodedata.category(before) in ("So", "Sk"):
        return unicodedata.category(after) == "So"
    spelt = all(0x600 <= ord(one) <= 0x109F or 0x1780 <= ord(one) <= 0x18AF for one in (before, after))
    return spelt and all(unicodedata.category(one)[0] in "LM" for one in (before, after))


def _varies(before: str, after: str) -> bool:
    if before in _KEYCAPS:
        return after == "\u20e3"
    return bool(before) and (unicodedata.category(before) in ("So", "Sm") or before in _EMOJI_PUNCTUATION)


def spelled_out(text: str) -> str:
    """Spell out by number what nobody sees or what turns letters around: for texts that somebody approves."""
    return "".join(
        one if one in "\n\t" or (one.isprintable() and plain(one) == one) else f"\\u{{{ord(one):x}}}" for one in text
    )
