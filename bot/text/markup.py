"""Read the inline level of a comment (code spans, tags, HTML comments), and say what a reader sees of each block."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from bot.text.blocks import line_starts
from bot.text.scanner import BlockForm, Leaf, scan


class BlockMeaning(Enum):
    """The meaning of a block on the page."""

    TEXT = "text"
    CODE = "code"
    HTML = "html"
    UNSEEN = "unseen"
    """Link definitions (`[//]: # (so)`), and blocks that are longer or nested deeper than anybody writes."""


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of the text, from offset to offset; the blocks of a text cover it without gaps."""

    kind: BlockMeaning
    start: int
    end: int
    quoted: bool
    """Inside a quote, also as its lazy continuation, which the page shows in the quote."""


_ONLY_MARKERS = re.compile(r"(?:[\s>*+\-\d.)=_]|\[\^[^\]\s]++\]:)*+\Z")
_KINDS = {
    BlockForm.FENCE: BlockMeaning.CODE,
    BlockForm.CODE: BlockMeaning.CODE,
    BlockForm.HTML: BlockMeaning.HTML,
    BlockForm.DEFINITION: BlockMeaning.UNSEEN,
    BlockForm.DEEP: BlockMeaning.UNSEEN,
}


def blocks(text: str) -> list[Block]:
    """Return the blocks of the text in their order."""
    starts = line_starts(text)
    owners: list[Leaf | None] = [None] * (len(starts) - 1)
    for leaf in scan(text):
        owners[leaf.first : leaf.last] = [leaf] * (leaf.last - leaf.first)
    return list(_group(text, starts, owners))


def _group(text: str, starts: list[int], owners: list[Leaf | None]) -> Iterator[Block]:
    def owner(line: int) -> tuple[int, BlockMeaning, bool]:
        leaf = owners[line]
        if leaf is not None:
            return leaf.first, _KINDS.get(leaf.form, BlockMeaning.TEXT), leaf.quoted
        shown = _ONLY_MARKERS.match(text, starts[line], starts[line + 1])
        return -1, BlockMeaning.TEXT if shown else BlockMeaning.UNSEEN, False

    for (_, kind, quoted), members in groupby(range(len(owners)), key=owner):
        lines = list(members)
        yield Block(kind, starts[lines[0]], starts[lines[-1] + 1], quoted)


class InlineMark(Enum):
    """The kind of a piece of a block."""

    TEXT = "text"
    CODE = "code"
    TAG = "tag"
    UNSEEN = "unseen"
    """An HTML comment, CDATA, a processing instruction or a declaration."""


@dataclass(frozen=True, slots=True)
class Piece:
    mark: InlineMark
    start: int
    end: int
    unclosed: bool = False
    """It never ends, so the page may hide all that follows."""


_TICKS = re.compile(r"`+")
_ESCAPE_OR_TICKS = re.compile(r"\\[\\`]|`+")
_ADDRESS = r"(?<![A-Za-z])(?:https?|ftp)://(?=[^\s!-/:-@\[-`{-~])|(?:(?<=[\s*_~(])|\A)www\.(?=[^\s!-/:-@\[-`{-~])"
_ADDRESS_END = re.compile(r"[^\s<]*+")
_DESTINATION = re.compile(
    r"""\([ \t\n]*+(?:<[^<>\n]*+>|(?!<)[^\s()]*+(?:\([^\s()]*+\)[^\s()]*+)*+)
    (?:[ \t\n]++(?:"[^"]*+"|'[^']*+'|\([^()]*+\)))?+[ \t\n]*+\)""",
    re.VERBOSE,
)
_HOST = re.compile(r"[^\s!-,/:-@\[-^`{-~]*+")
_NEXT_IN_WORDS = re.compile(rf"\\[\\`\[\]]|`+|[\[\]]|{_ADDRESS}", re.IGNORECASE)
_NEXT = re.compile(rf"\\[\\`<\[\]]|`+|<(?=[A-Za-z/!?])|[\[\]]|{_ADDRESS}", re.IGNORECASE)
_NEXT_IN_HTML = re.compile(r"<(?=[A-Za-z/!?])")
_AUTOLINK = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[^\s<>@]+@[^\s<>@]+)>")
# Possessive throughout: each tag is tried one way only, so that one without an end costs one pass.
_TAG = re.compile(
    r"""<(?:/[A-Za-z][A-Za-z0-9-]*+\s*+
        |[A-Za-z][A-Za-z0-9-]*+
         (?:\s++[A-Za-z_:][A-Za-z0-9_.:-]*+(?:\s*+=\s*+(?:[^\s"'=<>`]++|'[^']*+'|"[^"]*+"))?+)*+\s*+/?+)>""",
    re.VERBOSE,
)
_TAG_IN_HTML = re.compile(r"""</?[A-Za-z](?:=\s*+(?:"[^"]*"|'[^']*'|(?!["']))|[^>=])*+>""")
_ENDS = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">"))


def pieces(text: str, block: Block) -> Iterator[Piece]:
    """Yield the pieces of a TEXT or HTML block, in order and without gaps."""
    raw = block.kind is BlockMeaning.HTML
    pattern = _NEXT_IN_HTML if raw else _NEXT
    ticks = None if raw else _Ticks(text, block.start, block.end)
    brackets = _Brackets()
    done = at = block.start
    while match := pattern.search(text, at, block.end):
        if match[0] in brackets.SIGNS or match[0][-1] in "/.":
            at = brackets.passed(text, match, block.end)
            continue
        piece = _piece(text, block, match, ticks)
        at = piece.end
        if piece.mark is InlineMark.TEXT:
            continue
        if piece.start > done:
            yield Piece(InlineMark.TEXT, done, piece.start)
        yield piece
        done = piece.end
    if done < block.end:
        yield Piece(InlineMark.TEXT, done, block.end)


def code_spans(text: str, *, addresses: bool = True) -> Iterator[tuple[int, int]]:
    """Find inline code in words without HTML, backticks included. Without `addresses`, as if no address swallowed a
    backtick."""
    ticks, brackets, at = _Ticks(text, 0, len(text)), _Brackets(), 0
    pattern = _NEXT_IN_WORDS if addresses else _ESCAPE_OR_TICKS
    while match := pattern.search(text, at):
        at = brackets.passed(text, match, len(text))
        if match[0].startswith("`") and (close := ticks.closing(len(match[0]), at)) is not None:
            at = close + len(match[0])
            yield match.start(), at


class _Brackets:
    """Tracks brackets: outside of them a bare address (`https://a`) swallows what follows it, backticks too, up to a
    space."""

    SIGNS = ("[", "]")

    def __init__(self) -> None:
        self._open = 0

    def passed(self, text: str, match: re.Match[str], end: int) -> int:
        """Return where to read on behind a bracket or an address."""
        sign = match[0]
        if sign == "[":
            self._open += 1
        elif sign == "]" and self._open:
            self._open -= 1
            found = _DESTINATION.match(text, match.end(), end)
            return found.end() if found else match.end()
        elif sign[-1] in "/." and not self._open:
            host = _HOST.match(text, match.end(), end)
            if host and "_" not in "".join(host[0].split(".")[-2:]):  # else GitHub does not take it for an address
                found = _ADDRESS_END.match(text, match.end(), end)
                return found.end() if found else match.end()
        return match.end()


class _Ticks:
    """Finds the end of a code span without looking twice."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._runs: dict[int, list[int]] = {}
        for match in _TICKS.finditer(text, start, end):
            self._runs.setdefault(match.end() - match.start(), []).append(match.start())

    def closing(self, length: int, after: int) -> int | None:
        runs = self._runs.get(length, [])
        index = bisect_left(runs, after)
        return runs[index] if index < len(runs) else None


def _piece(text: str, block: Block, match: re.Match[str], ticks: _Ticks | None) -> Piece:
    start, found = match.start(), match.group()
    if found.startswith("\\"):
        return Piece(InlineMark.TEXT, start, match.end())
    if ticks is not None and found.startswith("`"):
        close = ticks.closing(len(found), match.end())
        if close is None:
            return Piece(InlineMark.TEXT, start, match.end())
        return Piece(InlineMark.CODE, start, close + len(found))
    return _unseen(text, block, start) or _tag(text, block, start)


def _unseen(text: str, block: Block, start: int) -> Piece | None:
    for opening, closing in _ENDS:
        if text.startswith(opening, start):
            if opening == "<!" and not text[start + 2 : start + 3].isalpha():
                continue
            if text.startswith(("<!-->", "<!--->"), start):
                return Piece(InlineMark.UNSEEN, start, text.index(">", start) + 1)
            end = text.find(closing, start + len(opening), block.end)
            if end < 0:
                return Piece(InlineMark.UNSEEN, start, block.end, unclosed=True)
            return Piece(InlineMark.UNSEEN, start, end + len(closing))
    return None


def _tag(text: str, block: Block, start: int) -> Piece:
    raw = block.kind is BlockMeaning.HTML
    match = (_TAG_IN_HTML if raw else _TAG).match(text, start, block.end)
    if match and not _AUTOLINK.match(text, start, block.end):
        return Piece(InlineMark.TAG, start, match.end())
    if raw and match is None and text[start + 1] in "/!?" and not text[start + 2 : start + 3].isalpha():
        return Piece(InlineMark.TEXT, start, start + 1)
    if raw and match is None:  # a tag that never ends takes the rest of the page into its attributes
        return Piece(InlineMark.UNSEEN, start, block.end, unclosed=True)
    return Piece(InlineMark.TEXT, start, start + 1)


_UNSEEN = re.compile(r"[^\n!-~]+")
"""Covers more than is ever taken out, so that no run of backticks becomes longer than it was counted."""


def shown(text: str, limit: int = 40) -> str:
    """Show words of others as inline code that they cannot leave."""
    clean = "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in " ".join(text.split()))
    return f"`{clean[:limit] or '?'}{'…' if len(clean) > limit else ''}`"


def fenced(text: str) -> str:
    return code(text.strip(), "text")


def code(text: str, language: str) -> str:
    """Make a code block that its content cannot close, even after invisible characters are taken out of it."""
    body = text.replace("\r\n", "\n").removesuffix("\n")
    fence = "`" * max(3, max(map(len, re.findall("`+", _UNSEEN.sub("", body))), default=0) + 1)
    return f"{fence}{language}\n{body}\n{fence}" if body else f"{fence}{language}\n{fence}"


def named(names: Sequence[str], most: int, longest: int = 200) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown(name, longest) for name in names[:most]) + more


def person(login: str) -> str:
    """Name a person as code, so that GitHub notifies nobody."""
    return shown(login, 60)
