"""Knows the lines of a text, and reads one from left to right in columns, as far as tabs reach."""

from __future__ import annotations

import re

LINE_END = re.compile(r"\r\n?|\n")
_BLANKS = re.compile(r"[ \t]*")
TAB = 4


def line_starts(text: str) -> list[int]:
    """The offset of every line, and the end of the text as the last."""
    starts = [0, *(match.end() for match in LINE_END.finditer(text))]
    return starts if starts[-1] == len(text) else [*starts, len(text)]


class Line:
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
