"""Divides text into lines, reads a line in columns, and knows which characters draw something on a page."""

from __future__ import annotations

import re
import unicodedata

LINE_END = re.compile(r"\r\n?|\n")
_BLANKS = re.compile(r"[ \t]*")
TAB = 4


def line_starts(text: str) -> list[int]:
    """The offset of every line, and the end of the text as the last."""
    starts = [0, *(match.end() for match in LINE_END.finditer(text))]
    return starts if starts[-1] == len(text) else [*starts, len(text)]


class LineReader:
    """What is left of one line: from `at`, which stands in column `column`, to `end`."""

    __slots__ = ("at", "column", "end", "indent", "number", "text", "word")

    def __init__(self, text: str, number: int, start: int, end: int) -> None:
        self.text, self.number, self.at, self.column = text, number, start, 0
        while end > start and text[end - 1] in "\r\n":
            end -= 1
        self.end = end
        self._look()

    def _look(self) -> None:
        """Where the next word begins, and how far it is indented."""
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
        """So many columns of white space, as far as there are any; of a tab perhaps only a part."""
        while columns > 0 and self.at < self.word:
            width = TAB - self.column % TAB if self.text[self.at] == "\t" else 1
            step = min(columns, width)
            self.column += step
            columns -= step
            self.at += step == width
        self._look()

    def pass_to(self, offset: int) -> None:
        """Behind what was read, which holds no tab."""
        self.column += self.indent + offset - self.word
        self.at = offset
        self._look()

    def rest(self) -> tuple[int, int]:
        """The spaces that a tab leaves over at its beginning, and the offset at which the words of the text go on."""
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
"""Category Cf by name, yet drawn on the page."""
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065\u3164\uffa0")
"""Letters and marks by category that draw nothing."""
_KEYCAPS = frozenset("#*0123456789")
_EMOJI_PUNCTUATION = frozenset("‼⁉〰")


def plain(text: str) -> str:
    """The text without characters that draw nothing: for names, titles and as the last step for the rest."""
    return _NOT_PLAIN.sub(_drawn, _TERMINAL.sub("", text))


def shown(text: str) -> str:
    """The same with every kind of line break as a newline: for what is published."""
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
    if category in _UNSEEN_CATEGORIES or letter in _BLANK_LETTERS or _is_ignorable(ord(letter)):
        return ""
    return " " if letter == "\u2800" else letter


def _is_ignorable(code: int) -> bool:
    return 0xFE00 <= code <= 0xFE0F or 0xE0000 <= code <= 0xE0FFF or 0xFFF0 <= code <= 0xFFF8


def _joins(before: str, after: str) -> bool:
    """A joiner between emoji, or between letters of the scripts whose spelling needs it."""
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
    """For what a yes is given to: what nobody sees, or what turns letters around, stands there by number."""
    return "".join(one if _is_seen(one) else f"\\u{{{ord(one):x}}}" for one in text)


def _is_seen(letter: str) -> bool:
    return letter in "\n\t" or (letter.isprintable() and plain(letter) == letter)
