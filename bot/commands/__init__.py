"""Parses comments: finds the line with our word, reads the form of the command, and guesses what a misspelt one means.

Only a line of the author's own text counts: no code, quotation, comment or copied mail."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Generic, TypeVar

from bot.commands import small_talk
from bot.commands.options import NO_OPTIONS, Options, take
from bot.errors import CommandError
from bot.text.blocks import plain
from bot.text.likeness import is_near
from bot.text.markup import Block, BlockMeaning, InlineMark, blocks, pieces, shown

FREE_TEXT = "run"
"""The word for work in free text, which nobody has to write."""
_VERB = re.compile(r"([A-Za-z][A-Za-z-]{0,39})(?=\s|\Z)[ \t]*")
_BLANK_LINES = re.compile(r"[ \t]*(?:\r?\n[ \t]*(?=\r?\n))*\r?\n")
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
_FORGIVING = re.MULTILINE | re.IGNORECASE | re.ASCII
_BEFORE_US = (
    r"(?:(?:[-*+]|\d{1,3}\.|#{1,6})[ \t]+)?[\\/]?"
    r"(?:(?:hey|hi|hello|ok|okay|please|pls|yo|dear|so|and|now|can you|could you)[ ,!]{1,3}){0,3}"
)
"""People begin a line so, and then call us."""
_SLIP = re.compile(r"^ {0,3}([/@][\w-]{3,40})(?=[:,!?.]{0,3}(?:\s|\Z))", _FORGIVING)
_QUOTED_NEXT = re.compile(r"\s*+>")
_SIGNATURE = re.compile(r"^-- ?\r?$", re.MULTILINE)
THANKS = "thanks"
"""The word for a comment that only thanks us: it is no line of `help`, and costs nothing."""
LONGEST = 40
"""A longer text is work, not a misspelt command."""
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
_POINTING = re.compile(
    rf"(approve|deny|retry|stop|undo|{'|'.join(word for word in _SYNONYMS if ' ' not in word)})"
    r"\s+(?:it|that|this|the plan)\Z"
)


@dataclass(frozen=True)
class Command:
    """A person's command. The word is stored and shown: `run`, `fix ci`, …"""

    word: str
    prompt: str = ""
    """Empty for `run`: the thread itself says what to do."""
    options: Options = NO_OPTIONS


C = TypeVar("C", bound=Command)


@dataclass(frozen=True)
class CommandText:
    """The text after our word (`ours`), without options; `after` is what follows the command's word."""

    ours: str
    words: str
    options: Options
    after: str = ""

    def behind(self, word: str) -> CommandText | None:
        rest = self.words
        for part in word.split():
            match = _VERB.match(rest)
            if match is None or match[1].lower() != part:
                return None
            rest = rest[match.end() :]
        return replace(self, after=rest)

    def behind_colon(self, word: str) -> CommandText | None:
        """Do the same for a word that a colon may follow, as in `not a bug: …`."""
        rest = re.sub(rf"\A({re.escape(word)})[:,.]", r"\1 ", self.words[:LONGEST], flags=re.IGNORECASE)
        return replace(self, words=rest + self.words[LONGEST:]).behind(word)

    @property
    def ends_line(self) -> bool:
        return self.after[:1] in ("", "\r", "\n")

    @property
    def ends(self) -> bool:
        return self.ends_line and not before_tail(self.after).strip()

    def taken(self) -> tuple[str, Options]:
        text, options = take(self.after, self.options)
        return trimmed(text), options

    def without_options(self, command: C) -> C:
        if self.options != NO_OPTIONS:
            raise CommandError(f"`{self.ours} {command.word}` takes no options.")
        return command


@dataclass(frozen=True)
class CommandForm(Generic[C]):
    """How a command is written, and its line in `help`. Words that do not fit a form are work."""

    word: str
    usage: str
    what: str
    text: bool = False
    """Words for the agent may follow."""
    below: bool = False
    """Words may only be on the lines below; a command that takes none ignores them."""
    options: bool = False
    colon: bool = False
    """A colon may follow it."""
    polite: bool = False
    """`please stop it now!` counts too: the command destroys nothing."""
    read: Callable[[CommandText], C | None] | None = None
    """A reader for a special form."""

    def found(self, text: CommandText) -> Command | None:
        if self.read is not None:
            return self.read(text)
        prompt, options, ends = "", text.options, text.ends_line if self.below else text.ends
        if self.text:
            after, options = take(text.after, options)
            prompt, ends = trimmed(after), not self.below or after[:1] in ("", "\r", "\n")
        if not ends:
            return None
        command = Command(self.word, prompt, options)
        return command if self.options else text.without_options(command)

    @property
    def stands_alone(self) -> bool:
        return not self.text and self.read is None


Forms = Sequence[CommandForm[Any]]


def misaddressed(body: str, *, word: str = "/claude", app_slug: str = "") -> bool:
    """Tell whether a line of the author's own words addresses us in a way that is no command."""
    names = [one for one in (word.lstrip("/@"), app_slug) if one]
    called = "|".join(map(re.escape, names))
    address = rf"^ {{0,3}}{_BEFORE_US}[@/](?:{called})(?=(?:\[bot\])?[:,!?.]{{0,3}}(?:\s|\Z))"
    lines = list(re.finditer(address, body, _FORGIVING))
    known = [f"{sign}{name}".lower() for name in names for sign in "@/"]
    slips = [one for one in _SLIP.finditer(body) if any(is_near(one[1].lower(), right) for right in known)]
    return bool(_own_lines(body, lines) or _own_lines(body, slips))


def begins(body: str, *, word: str = "/claude", app_slug: str = "") -> bool:
    """Tell whether any line begins with our word, even in code; else there is no command. Parses nothing."""
    return any(True for _ in _candidates(body, _words(word, app_slug)))


def parse(body: str, forms: Forms, *, word: str = "/claude", app_slug: str = "") -> Command | None:
    """Find the command in a comment; a CommandError says what to write instead."""
    ends = _own_lines(body, list(_candidates(body, _words(word, app_slug))))
    if not ends:
        return None
    if len(ends) > 1:
        raise CommandError(
            f"This comment holds {len(ends)} commands, so I did none of them. "
            "One command per comment, please; its text may be as long as it needs to be."
        )
    rest = body[ends[0] :]
    if rest.strip() == "--help":
        return Command("help")
    known = [form for form in forms if form.word != FREE_TEXT]
    _refuse_options(CommandText(word, rest.lstrip(" \t"), NO_OPTIONS), known)
    words, options = take(rest.lstrip(" \t"))
    return _read(CommandText(word, words, options), known)


def named(body: str, *, word: str = "/claude", app_slug: str = "") -> bool:
    """Tell whether it has our word anywhere: quoted, in mid-sentence, or misspelt."""
    seen = plain(unicodedata.normalize("NFKC", body)).casefold()
    return any(re.search(rf"(?<![\w/@]){re.escape(one.casefold())}(?![\w-])", seen) for one in _words(word, app_slug))


def trimmed(text: str) -> str:
    """Cut blanks around a text, but keep the first line's indentation, which may mean code."""
    match = _BLANK_LINES.match(text)
    return (text[match.end() :] if match else text.lstrip(" \t")).rstrip()


def before_tail(text: str) -> str:
    """Cut the signature and the quoted mail that a reply by e-mail carries."""
    ends = [match.start() for match in (_MAIL.search(text), _SIGNATURE.search(text)) if match]
    return text[: min(ends)] if ends else text


def answered_with(said: str) -> str | None:
    """Return `approve` or `deny` if someone says so in everyday words."""
    return _ANSWERS.get(_plainly(said))


def is_mere_answer(said: str) -> bool:
    """Tell whether it answers a question and asks for nothing: `do it` may mean the issue itself."""
    return answered_with(said) is not None and _plainly(said) not in ("do it", "go ahead")


def _words(word: str, app_slug: str) -> tuple[str, ...]:
    return (word, f"@{app_slug}") if app_slug else (word,)


def _read(text: CommandText, forms: Forms) -> Command:
    for form in forms:
        behind = text.behind_colon(form.word) if form.colon else text.behind(form.word)
        if behind is not None and (command := form.found(behind)) is not None:
            return command
    said = before_tail(text.words).strip()
    word = _plainly(said)
    if any(form.polite and form.word == word for form in forms):
        return text.without_options(Command(word))
    meant = _likely_meant(said, [form.word for form in forms])
    if meant:
        raise CommandError(
            f"I don't know {shown(said)}. Did you mean `{text.ours} {meant}`? "
            f"`{text.ours} help` lists the commands; for work, say a few words more."
        )
    if small_talk.is_thanks(said):
        return Command(THANKS)
    if (instead := small_talk.hint(said, text.ours)) is not None:
        raise CommandError(instead)
    return Command(FREE_TEXT, trimmed(text.words), text.options)


def _refuse_options(text: CommandText, forms: Forms) -> None:
    """Refuse `stop --force`, which is no work for an agent."""
    for form in forms:
        behind = text.behind(form.word) if form.stands_alone and not form.options else None
        words = before_tail(behind.after).split() if behind else []
        if words and all(word.startswith(("--", "—", "–")) for word in words):
            raise CommandError(f"`{text.ours} {form.word}` has no option {shown(words[0])}.")


def _candidates(body: str, words: Sequence[str]) -> Iterator[re.Match[str]]:
    """Find lines that begin with one of these words: only they can be commands."""
    exact = "|".join(re.escape(word) for word in words)
    return re.finditer(rf"^ {{0,3}}(?:{exact})(?:\[bot\])?[:,]?(?=[ \t\r\n]|\Z)", body, _FORGIVING)


def _own_lines(body: str, found: Sequence[re.Match[str]]) -> list[int]:
    """Return where each match ends that is in the author's own words; linear in the length of the body."""
    if not found:
        return []
    divided = blocks(body)
    starts = [block.start for block in divided]
    closed = list(_closed(body, divided))
    tail = _mail_tail(body, divided, starts)
    ends = []
    for match in found:
        at = match.start()
        range_ = bisect_right(closed, (at, at)) - 1
        is_open = range_ < 0 or at >= closed[range_][1]
        if is_open and at < tail and _is_own(divided[bisect_right(starts, at) - 1]):
            ends.append(match.end())
    return ends


def _is_own(block: Block) -> bool:
    return block.kind in (BlockMeaning.TEXT, BlockMeaning.HTML) and not block.quoted


def _mail_tail(body: str, divided: Sequence[Block], starts: Sequence[int]) -> int:
    """Find where copied mail begins, if it has no `>` marks, which say so themselves."""
    for match in _MAIL.finditer(body):
        is_own = _is_own(divided[bisect_right(starts, match.start()) - 1])
        if is_own and not _QUOTED_NEXT.match(body, match.end()):
            return match.start()
    return len(body)


def _closed(body: str, divided: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """Find ranges without commands: spans of code, comments, tags, and elements of code or quotation."""
    opened: list[tuple[str, int]] = []
    own = (block for block in divided if block.kind in (BlockMeaning.TEXT, BlockMeaning.HTML))
    for piece in chain.from_iterable(pieces(body, block) for block in own):
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


def _plainly(said: str) -> str:
    """Leave out polite and urgent words and punctuation: `Stop it now!` is `stop`."""
    return _bare(said) if len(said) <= LONGEST else said


def _likely_meant(said: str, known: Sequence[str]) -> str | None:
    """Guess the command that is meant; several words must match exactly."""
    if not said or len(said) > LONGEST:
        return None
    words = _bare(said)
    if words in _SYNONYMS:
        return _SYNONYMS[words]
    if " " in words:
        return words if words in known else None
    return next((one for one in known if is_near(words, one)), None)


def _bare(said: str) -> str:
    match = _POLITE.match(" ".join(said.lower().split()))
    words = match[1] if match else said
    return found[1] if (found := _POINTING.match(words)) else words
