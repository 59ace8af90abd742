"""Divide markdown into blocks as GitHub does: line by line, each looked at once, in time linear in its length. A text
that is longer or nested deeper than anybody writes becomes `DEEP`. The tests compare this with cmark-gfm and
markdown-it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

from bot.text import blocks
from bot.text.blocks import LineReader, line_starts

DEEPEST = 20
"""The most quotes, items of lists and notes around a block, and the most marks of quotation on a line."""
MOST_LINES = 10_000
MOST_CHARACTERS = 262_144
"""Four times what GitHub takes: making a text harmless lengthens it."""


class BlockForm(Enum):
    """The form of a block."""

    PARAGRAPH = "paragraph"
    HEADING = "heading"
    RULE = "rule"
    FENCE = "fence"
    CODE = "code"
    """Code by its indentation."""
    HTML = "html"
    ROW = "row"
    """A row of a table, its header or the line of dashes below that."""
    DEFINITION = "definition"
    DEEP = "deep"


class Around(Enum):
    """The kind of a container."""

    QUOTE = "quote"
    ITEM = "item"
    NOTE = "note"


@dataclass(slots=True, eq=False)
class Container:
    kind: Around
    line: int
    parent: Container | None
    needs: int = 0
    """The indentation of lines that belong to it."""
    mark: str = ""
    """The sign of an item's marker, or the name of a note."""
    number: int | None = None
    filled: bool = False


@dataclass(slots=True, eq=False)
class Leaf:
    """Lines [first, last) of a text, and the words of each, behind the marks of the containers."""

    form: BlockForm
    first: int
    last: int
    quoted: bool
    """Inside a quote, also as its lazy continuation."""
    within: Container | None
    words: list[tuple[int, int, int]] = field(default_factory=list)
    """Spaces that a tab leaves over, offset of the first letter, offset of the end."""
    mark: str = ""
    """The sign of a fence, in full; the level of a heading in `#`; the kind of a row."""
    info: str = ""
    indent: int = 0
    ends: re.Pattern[str] | None = None
    runs_on: bool = False
    """A fence without an end: what is put behind the text would be code."""


def scan(text: str) -> list[Leaf]:
    """Return the blocks in order; lines between them are empty or hold only marks of containers."""
    scanner = _Scanner(text)
    starts = line_starts(text)
    for number, (start, end) in enumerate(pairwise(starts)):
        if number >= MOST_LINES or end > MOST_CHARACTERS:
            scanner.give_up(number, len(starts) - 1)
            break
        scanner.read(LineReader(text, number, start, end))
    return scanner.end()


def margin(within: Container | None) -> str:
    """Return the begin of a further line in the same containers."""
    parts: list[str] = []
    while within is not None:
        parts.append("> " if within.kind is Around.QUOTE else " " * within.needs)
        within = within.parent
    return "".join(reversed(parts))


def content(text: str, leaf: Leaf) -> str:
    return "\n".join(" " * spaces + text[start:end] for spaces, start, end in leaf.words)


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._stack: list[Container] = []
        self._leaf: Leaf | None = None
        self._found: list[Leaf] = []

    def end(self) -> list[Leaf]:
        if self._leaf is not None:
            self._leaf.runs_on = self._leaf.form is BlockForm.FENCE
        self._close(0)
        return self._found

    def give_up(self, line: int, lines: int) -> None:
        self._close(0)
        self._found.append(Leaf(BlockForm.DEEP, line, lines, quoted=False, within=None))

    def read(self, line: LineReader) -> None:
        kept = self._kept(line)
        whole = kept == len(self._stack)
        if whole and self._leaf is not None and self._goes_on(self._leaf, line):
            return
        if line.is_blank:
            self._close(kept)
            return
        self._begin(line, kept)

    def _kept(self, line: LineReader) -> int:
        """Pass the marks of the open containers that this line belongs to; return how many these are."""
        for at, one in enumerate(self._stack):
            if one.kind is Around.QUOTE:
                if line.indent > 3 or not self._text.startswith(">", line.word, line.end):
                    return at
                _pass_quote(line)
            elif not line.is_blank and line.indent >= one.needs:
                line.skip(one.needs)
            elif not (line.is_blank and one.filled):
                return at
        return len(self._stack)

    # A block that is open already

    def _goes_on(self, leaf: Leaf, line: LineReader) -> bool:
        """Add the line if it belongs to the open block without being looked at further."""
        match leaf.form:
            case BlockForm.FENCE:
                self._go_on_fence(leaf, line)
                return True
            case BlockForm.CODE:
                return self._go_on_code(leaf, line)
            case BlockForm.HTML if not (line.is_blank and leaf.ends is blocks.BLANK):
                _add(leaf, line)
                self._end_html(leaf, line)
                return True
            case BlockForm.DEEP if not line.is_blank:
                _add(leaf, line)
                return True
            case _:
                return False

    def _go_on_fence(self, leaf: Leaf, line: LineReader) -> None:
        if line.indent <= 3 and blocks.closes(self._text, line.word, line.end, leaf.mark):
            leaf.last = line.number + 1
            self._finish()
            return
        line.skip(min(leaf.indent, line.indent))
        _add(leaf, line)

    def _go_on_code(self, leaf: Leaf, line: LineReader) -> bool:
        if line.indent < 4 and not line.is_blank:
            return False
        line.skip(4)
        last = leaf.last
        _add(leaf, line)
        if line.is_blank:  # it belongs to the code only if more of that follows
            leaf.last = last
        return True

    def _end_html(self, leaf: Leaf, line: LineReader) -> None:
        if leaf.ends is not None and leaf.ends is not blocks.BLANK and leaf.ends.search(self._text, line.at, line.end):
            self._finish()

    # What begins on a line

    def _begin(self, line: LineReader, kept: int) -> None:
        """Open the containers and the block that begin here, or go on with a paragraph."""
        leaf = self._leaf
        is_in_words = leaf is not None and leaf.form in (BlockForm.PARAGRAPH, BlockForm.DEEP)
        inner = leaf if kept == len(self._stack) else None
        depth = kept
        while True:
            if line.indent > 3:
                if not is_in_words:
                    self._close(depth)
                    line.skip(4)
                    _add(self._open(BlockForm.CODE, line.number), line)
                    return
                break
            if self._container(line, depth, interrupts=inner is not None and inner.form is BlockForm.PARAGRAPH):
                if self._leaf is not None:  # deeper than we look
                    return
                depth, inner, is_in_words = len(self._stack), None, False
                if line.is_blank:
                    return
                continue
            if self._block(line, depth, inner):
                return
            break
        self._words(line, depth, leaf if is_in_words else None)

    def _words(self, line: LineReader, depth: int, leaf: Leaf | None) -> None:
        """`leaf` is the paragraph that these words belong to, even if they leave out its marks of quotation."""
        if leaf is None:
            if self._row(line, depth):
                return
            self._close(depth)
            leaf = self._open(BlockForm.PARAGRAPH, line.number)
        line.skip(line.indent)
        _add(leaf, line)

    def _container(self, line: LineReader, depth: int, *, interrupts: bool) -> bool:
        """Open a container if one begins here."""
        if self._text.startswith(">", line.word, line.end):
            _pass_quote(line)
            opened: Container | None = Container(Around.QUOTE, line.number, None)
        else:
            opened = self._item(line, interrupts=interrupts) or self._note(line)
        if opened is None:
            return False
        self._close(depth)
        if len(self._stack) >= DEEPEST:
            _add(self._open(BlockForm.DEEP, line.number), line)
            return True
        self._fill()
        opened.parent = self._stack[-1] if self._stack else None
        self._stack.append(opened)
        return True

    def _item(self, line: LineReader, *, interrupts: bool) -> Container | None:
        match = blocks.ITEM.match(self._text, line.word, line.end)
        if match is None or blocks.RULE.match(self._text, line.word, line.end):
            return None
        number = int(match[1]) if match[1] else None
        if interrupts and (number not in (None, 1) or not self._text[match.end() : line.end].strip(" \t")):
            return None
        needs = line.indent + match.end() - line.word
        line.pass_to(match.end())
        gap = line.indent if 1 <= line.indent <= 4 and not line.is_blank else 1
        line.skip(gap)
        return Container(Around.ITEM, line.number, None, needs + gap, match[0][-1], number)

    def _note(self, line: LineReader) -> Container | None:
        match = blocks.NOTE.match(self._text, line.word, line.end)
        if match is None:
            return None
        line.skip(line.indent)
        line.pass_to(match.end())
        return Container(Around.NOTE, line.number, None, 4, match[1], filled=True)

    def _block(self, line: LineReader, depth: int, inner: Leaf | None) -> bool:
        """Open a block other than words if one begins here, or make the paragraph above a heading."""
        text, word, end = self._text, line.word, line.end
        paragraph = inner if inner is not None and inner.form is BlockForm.PARAGRAPH else None
        match text[word]:
            case "#":
                if heading := blocks.HEADING.match(text, word, end):
                    return self._one_line(BlockForm.HEADING, line, depth, mark=heading[0])
            case "`" | "~":
                if fence := blocks.FENCE.match(text, word, end):
                    self._close(depth)
                    leaf = self._open(BlockForm.FENCE, line.number)
                    leaf.mark, leaf.info, leaf.indent = fence[1], fence[2].strip(), line.indent
                    return True
            case "<":
                if ends := blocks.html_end(text, word, end, alone=paragraph is None):
                    return self._open_html(line, depth, ends)
            case "=" | "-" if paragraph and blocks.UNDERLINE.match(text, word, end):
                return self._underline(paragraph, line)
            case _:
                pass
        if text[word] in "-_*" and blocks.RULE.match(text, word, end):
            return self._one_line(BlockForm.RULE, line, depth)
        return paragraph is not None and self._table(paragraph, line)

    def _one_line(self, form: BlockForm, line: LineReader, depth: int, *, mark: str = "") -> bool:
        self._close(depth)
        leaf = self._open(form, line.number)
        leaf.mark = mark
        line.pass_to(line.word + len(mark))
        line.skip(line.indent)
        _add(leaf, line)
        self._finish()
        return True

    def _open_html(self, line: LineReader, depth: int, ends: re.Pattern[str]) -> bool:
        lazy = self._leaf is not None and self._leaf.quoted  # readers differ on whether it is in the quote still
        self._close(depth)
        leaf = self._open(BlockForm.HTML, line.number)
        leaf.ends, leaf.quoted = ends, leaf.quoted or lazy
        _add(leaf, line)
        self._end_html(leaf, line)
        return True

    def _underline(self, paragraph: Leaf, line: LineReader) -> bool:
        """Make the paragraph above, without its definitions, a heading."""
        words = self._after_definitions(paragraph)
        if words is None:  # nothing stands above the line: to GitHub it is words itself
            words = self._open(BlockForm.PARAGRAPH, line.number)
            line.skip(line.indent)
            _add(words, line)
            return True
        words.form, words.mark = BlockForm.HEADING, self._text[line.word] * 2
        words.last = line.number + 1
        self._leaf = words
        self._finish()
        return True

    def _table(self, paragraph: Leaf, line: LineReader) -> bool:
        """Begin a table if the last line of the paragraph and this one are its head."""
        _, start, end = paragraph.words[-1]
        if paragraph.last != line.number or not blocks.begins(self._text[start:end], self._text[line.word : line.end]):
            return False
        header = paragraph.words.pop()
        paragraph.last -= 1
        if paragraph.words:
            self._finish()
        self._leaf = None
        for number, words in ((line.number - 1, header), (line.number, (0, line.word, line.end))):
            leaf = self._open(BlockForm.ROW, number)
            leaf.words.append(words)
            leaf.last = number + 1
            if number == line.number - 1:
                leaf.mark = blocks.HEADER
                self._finish()
        leaf.mark = blocks.DELIMITERS
        return True

    def _row(self, line: LineReader, depth: int) -> bool:
        """Add the line to the table above if there is one."""
        leaf = self._leaf
        if leaf is None or leaf.form is not BlockForm.ROW or depth != len(self._stack) or leaf.last != line.number:
            return False
        self._finish()
        line.skip(line.indent)
        _add(self._open(BlockForm.ROW, line.number), line)
        return True

    # Opening and closing

    def _fill(self) -> None:
        if self._stack:
            self._stack[-1].filled = True

    def _open(self, form: BlockForm, line: int) -> Leaf:
        self._fill()
        quoted = any(one.kind is Around.QUOTE for one in self._stack)
        self._leaf = Leaf(form, line, line + 1, quoted, self._stack[-1] if self._stack else None)
        return self._leaf

    def _close(self, depth: int) -> None:
        """Close the open block, and all containers below this depth."""
        self._finish()
        del self._stack[depth:]

    def _finish(self) -> None:
        leaf, self._leaf = self._leaf, None
        if leaf is None:
            return
        if leaf.form is BlockForm.PARAGRAPH:
            leaf = self._after_definitions(leaf)
        elif leaf.form is BlockForm.CODE:
            del leaf.words[leaf.last - leaf.first :]
        if leaf is not None:
            self._found.append(leaf)

    def _after_definitions(self, leaf: Leaf) -> Leaf | None:
        """Split off the definitions of a paragraph; return the rest, if any."""
        if not self._text.startswith("[", leaf.words[0][1]):
            return leaf
        words = content(self._text, leaf)
        at = leaf.first
        begun = 0
        for end in blocks.leading(words):
            lines = words.count("\n", begun, end) + (end == len(words))
            self._found.append(_part(leaf, BlockForm.DEFINITION, at, at + lines))
            at, begun = at + lines, end
        return _part(leaf, leaf.form, at, leaf.last) if at < leaf.last else None


def _part(leaf: Leaf, form: BlockForm, first: int, last: int) -> Leaf:
    words = leaf.words[first - leaf.first : last - leaf.first]
    return Leaf(form, first, last, leaf.quoted, leaf.within, words)


def _add(leaf: Leaf, line: LineReader) -> None:
    leaf.words.append((*line.rest(), line.end))
    leaf.last = line.number + 1


def _pass_quote(line: LineReader) -> None:
    line.pass_to(line.word + 1)
    line.skip(1)
