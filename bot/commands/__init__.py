"""Knows how a comment's text becomes a command: which of the forms it has, and where it ends and its words begin."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from bot.commands.options import NO_OPTIONS, Options, take
from bot.commands.text import before_tail, candidates, command_lines, likely_meant, plainly
from bot.errors import CommandError
from bot.text.blocks import plain
from bot.words.quoting import shown

FREE_TEXT = "run"
"""The word under which work in free text is stored; nobody has to write it."""
_VERB = re.compile(r"([A-Za-z][A-Za-z-]{0,39})(?=\s|\Z)[ \t]*")
_BLANK_LINES = re.compile(r"[ \t]*(?:\r?\n[ \t]*(?=\r?\n))*\r?\n")


@dataclass(frozen=True)
class Command:
    """What somebody asks for. The word is stored and shown: `run`, `fix ci`, …"""

    word: str
    prompt: str = ""
    """For `run`: none means the thread itself."""
    options: Options = NO_OPTIONS


C = TypeVar("C", bound=Command)


@dataclass(frozen=True)
class CommandText:
    """What stands after our word (`ours`), without the options; `after` is what follows the command's own word."""

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
    """How one command is written, and what `help` says of it. Words that do not fit the form are work."""

    word: str
    usage: str
    what: str
    text: bool = False
    """Words for the agent may follow; without this it stands alone."""
    below: bool = False
    """Words stand on the lines below alone; where the command takes none, they do not matter."""
    options: bool = False
    polite: bool = False
    """`please stop it now!` counts too: the command takes nothing away."""
    read: Callable[[CommandText], C | None] | None = None
    """Reads a form of its own."""

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


def begins(body: str, *, word: str = "/claude", app_slug: str = "") -> bool:
    """Tell whether any line begins with our word, even in code: without one there is no command. Parses nothing."""
    return any(True for _ in candidates(body, _words(word, app_slug)))


def parse(body: str, forms: Forms, *, word: str = "/claude", app_slug: str = "") -> Command | None:
    """Find the command in a comment; a CommandError's text says what to write instead."""
    lines = command_lines(body, _words(word, app_slug))
    if not lines:
        return None
    if len(lines) > 1:
        raise CommandError(
            f"This comment holds {len(lines)} commands, so I did none of them. "
            "One command for each comment, please; the text may be as long as it needs to be."
        )
    rest = body[lines[0].rest :]
    if rest.strip() == "--help":
        return Command("help")
    words, options = take(rest.lstrip(" \t"))
    return _read(CommandText(word, words, options), [form for form in forms if form.word != FREE_TEXT])


def named(body: str, *, word: str = "/claude", app_slug: str = "") -> bool:
    """Tell whether our word stands in it at all: quoted, in mid-sentence, or spelt so that it is no command."""
    seen = plain(unicodedata.normalize("NFKC", body)).casefold()
    return any(re.search(rf"(?<![\w/@]){re.escape(one.casefold())}(?![\w-])", seen) for one in _words(word, app_slug))


def trimmed(text: str) -> str:
    """Cut the blanks around a text; its first line keeps its indentation, which may mean code."""
    match = _BLANK_LINES.match(text)
    return (text[match.end() :] if match else text.lstrip(" \t")).rstrip()


def _words(word: str, app_slug: str) -> tuple[str, ...]:
    return (word, f"@{app_slug}") if app_slug else (word,)


def _read(text: CommandText, forms: Forms) -> Command:
    for form in forms:
        behind = text.behind(form.word)
        if behind is not None and (command := form.found(behind)) is not None:
            return command
    said = before_tail(text.words).strip()
    word = plainly(said)
    if any(form.polite and form.word == word for form in forms):
        return text.without_options(Command(word))
    _refuse_options(text, forms)
    meant = likely_meant(said, [form.word for form in forms])
    if meant:
        raise CommandError(
            f"I don't know {shown(said)}. Did you mean `{text.ours} {meant}`? "
            f"`{text.ours} help` lists the commands; for work, say a few words more."
        )
    return Command(FREE_TEXT, trimmed(text.words), text.options)


def _refuse_options(text: CommandText, forms: Forms) -> None:
    """`stop --force` is no work for an agent."""
    for form in forms:
        behind = text.behind(form.word) if form.stands_alone else None
        words = before_tail(behind.after).split() if behind else []
        if words and all(word.startswith(("--", "—", "–")) for word in words):
            raise CommandError(f"`{text.ours} {form.word}` has no option {shown(words[0])}.")
