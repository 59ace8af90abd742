"""Finds where a comment may hold a command, and guesses which word a misspelt one means."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.text.likeness import is_near
from bot.text.markup import Block, BlockMeaning, InlineMark, Piece, blocks, pieces


@dataclass(frozen=True)
class CommandLine:
    """A line that begins with our word; `rest` is the offset right after the word."""

    start: int
    rest: int


_NOT_OWN_WORDS = ("pre", "code", "blockquote", "script", "style", "textarea", "template", "samp", "kbd", "xmp")
_ELEMENT = re.compile(r"<(/?)(" + "|".join(_NOT_OWN_WORDS) + r")(?=[\s/>])", re.IGNORECASE)
_MAIL = re.compile(
    r"""^(?:
      (?:On|Am|Le|El|Il|Em|Op|Den|På)\ (?=[^\n]*\d)[^\n]{4,200}(?:\r?\n[^\n]{1,200})?
        \ (?:wrote|schrieb|a\ écrit|escribió|ha\ scritto|escreveu|schreef|skrev)[^\n]{0,100}:[ \t\r]*$
    | -{2,}[ ]?(?:Original|Forwarded)\ [Mm]essage[ ]?-{2,}
    | From:\ [^\n]+\n(?:Sent|Date|To):[ ]
    | (?:—|--)[ \t]*\r?\nReply\ to\ this\ email\ directly
    | Reply\ to\ this\ email\ directly
    )""",
    re.MULTILINE | re.VERBOSE,
)
_QUOTED_NEXT = re.compile(r"\s*+>")
_SIGNATURE = re.compile(r"^-- ?\r?$", re.MULTILINE)


def candidates(body: str, words: Sequence[str]) -> Iterator[re.Match[str]]:
    """Every line that begins with one of these words: the only ones that can be commands, wherever they stand."""
    exact = "|".join(re.escape(word) for word in words)
    return re.finditer(rf"^ {{0,3}}(?:{exact})(?=[ \t\r\n]|\Z)", body, re.MULTILINE)


def command_lines(body: str, words: Sequence[str]) -> list[CommandLine]:
    """Every line that is a command; linear in the length of the body."""
    found = list(candidates(body, words))
    if not found:
        return []
    divided = blocks(body)
    starts = [block.start for block in divided]
    closed = list(_closed(body, divided))
    tail = _mail_tail(body, divided, starts)
    return [
        CommandLine(match.start(), match.end())
        for match in found
        if match.start() < tail
        and _is_own(divided[bisect_right(starts, match.start()) - 1])
        and not _within(match.start(), closed)
    ]


def before_tail(text: str) -> str:
    """The text without the signature and the quoted mail that a reply by e-mail drags along."""
    ends = [match.start() for match in (_MAIL.search(text), _SIGNATURE.search(text)) if match]
    return text[: min(ends)] if ends else text


def _is_own(block: Block) -> bool:
    return block.kind in (BlockMeaning.TEXT, BlockMeaning.HTML) and not block.quoted


def _within(offset: int, ranges: Sequence[tuple[int, int]]) -> bool:
    index = bisect_right(ranges, (offset, offset)) - 1
    return index >= 0 and offset < ranges[index][1]


def _mail_tail(body: str, divided: Sequence[Block], starts: Sequence[int]) -> int:
    """Find where copied mail begins; mail with marks of quotation ends by them."""
    for match in _MAIL.finditer(body):
        if _QUOTED_NEXT.match(body, match.end()):
            continue
        if _is_own(divided[bisect_right(starts, match.start()) - 1]):
            return match.start()
    return len(body)


def _closed(body: str, divided: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """Ranges in which no line is a command: spans of code, comments, tags, and elements of code or quotation."""
    opened: list[tuple[str, int]] = []
    for piece in _all_pieces(body, divided):
        if piece.mark is InlineMark.TEXT:
            continue
        if piece.unclosed:
            yield (opened[0][1] if opened else piece.start), len(body)
            return
        element = _ELEMENT.match(body, piece.start) if piece.mark is InlineMark.TAG else None
        if element and not element[1]:
            opened.append((element[2].lower(), piece.start))
        elif element and opened and opened[-1][0] == element[2].lower():
            _, start = opened.pop()
            if not opened:
                yield start, piece.end
        elif not opened:
            yield piece.start, piece.end
    if opened:
        yield opened[0][1], len(body)


def _all_pieces(body: str, divided: Sequence[Block]) -> Iterator[Piece]:
    for block in divided:
        if block.kind in (BlockMeaning.TEXT, BlockMeaning.HTML):
            yield from pieces(body, block)


LONGEST = 40
"""Of what can still be a command that is misspelt; more are words of work."""
_SYNONYMS = {
    **dict.fromkeys(("abort", "cancel", "halt", "kill", "quit", "terminate"), "stop"),
    **dict.fromkeys(("again", "rerun", "try again"), "retry"),
    **dict.fromkeys(("revert",), "undo"),
    **dict.fromkeys(("reject",), "deny"),
    **dict.fromkeys(("resume",), "continue"),
}
_ANSWERS = {
    **dict.fromkeys(("yes", "y", "yep", "yeah", "ok", "okay", "sure", "lgtm", "go ahead", "do it", "allow"), "approve"),
    **dict.fromkeys(("no", "n", "nope", "don't", "dont"), "deny"),
}
_POLITE = re.compile(r"(?:please\s+)?(.*?)(?:[\s,.!?]+(?:please|pls|now|thanks|thank you))*[\s,.!?]*\Z", re.DOTALL)
_POINTING = re.compile(r"(approve|deny|retry|stop|undo)\s+(?:it|that|this|the plan)\Z")


def plainly(said: str) -> str:
    """Leave out what is only polite, urgent or a mark: `Stop it now!` is `stop`."""
    return _bare(said) if len(said) <= LONGEST else said


def answered_with(said: str) -> str | None:
    """`approve` or `deny`, where somebody says so in the words of every day."""
    return _ANSWERS.get(plainly(said))


def likely_meant(said: str, known: Sequence[str]) -> str | None:
    """Find the known command that is meant; several words must match it letter by letter."""
    if not said or len(said) > LONGEST:
        return None
    words = _bare(said)
    if words in _SYNONYMS:
        return _SYNONYMS[words]
    if " " in words:
        return words if words in known else None
    return next((one for one in known if is_near(words, one)), None)


def _bare(said: str) -> str:
    """`Fix CI, please!` is `fix ci`, and `stop it now` is `stop`."""
    match = _POLITE.match(" ".join(said.lower().split()))
    words = match[1] if match else said
    return found[1] if (found := _POINTING.match(words)) else words
