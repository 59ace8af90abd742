"""Knows how a comment's text becomes a command: which one is meant, and where it ends and its words begin."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from bot.commands import spelling
from bot.commands.forms import FORMS
from bot.commands.kinds import (
    Approve,
    Ask,
    Command,
    Continue,
    Cost,
    Deny,
    FixCi,
    Help,
    Init,
    Plan,
    Resolve,
    Retry,
    Review,
    Run,
    Status,
    Stop,
    StopCi,
    Undo,
    Why,
)
from bot.commands.options import NO_OPTIONS, Options, dollars, take
from bot.commands.text import before_tail, candidates, command_lines
from bot.errors import CommandError
from bot.text import characters
from bot.words.quoting import shown


def begins(body: str, *, word: str = "/claude", app_slug: str = "") -> bool:
    """Whether any line begins with our word, be it in code: without one there is no command. Nothing is parsed."""
    return any(True for _ in candidates(body, _words(word, app_slug)))


def parse(body: str, *, word: str = "/claude", app_slug: str = "") -> Command | None:
    """The command in a comment, or None; a CommandError's text says what to write instead."""
    lines = command_lines(body, _words(word, app_slug))
    if not lines:
        return None
    if len(lines) > 1:
        raise CommandError(
            f"This comment holds {len(lines)} commands, so I did none of them. "
            "One command for each comment, please; the text may be as long as it needs to be."
        )
    return _read(_Text(body[lines[0].rest :], word))


def named(body: str, *, word: str = "/claude", app_slug: str = "") -> bool:
    """Whether our word stands in it at all, also quoted, in mid-sentence, or spelt so that it is no command."""
    seen = characters.plain(unicodedata.normalize("NFKC", body)).casefold()
    return any(re.search(rf"(?<![\w/@]){re.escape(one.casefold())}(?![\w-])", seen) for one in _words(word, app_slug))


def _words(word: str, app_slug: str) -> tuple[str, ...]:
    return (word, f"@{app_slug}") if app_slug else (word,)


_VERB = re.compile(r"([A-Za-z]+)(?=\s|\Z)[ \t]*")
_BLANK_LINES = re.compile(r"[ \t]*(?:\r?\n[ \t]*(?=\r?\n))*\r?\n")
_CONFLICTS = re.compile(r"(?:the\s+)?(?:merge\s+)?conflicts?\b", re.IGNORECASE)
_ANSWER = re.compile(
    r"(?:(`?)([a-z0-9]{8}-\d{1,5}(?:-\d{1,5}|-fork)?|[0-9a-f]{12,40})\1(?=\s|\Z)[ \t]*)?"
    r"(?:(once|session)(?=\s|\Z)[ \t]*)?(?=[\r\n]|\Z)",
    re.IGNORECASE,
)
"""After `approve` or `deny`: the id of what is answered, or a commit, and how far a yes reaches."""
_SHORT_COMMIT = re.compile(r"`?([0-9a-f]{7}|[0-9a-f]{9,11})`?[ \t]*(?=[\r\n]|\Z)", re.IGNORECASE)
"""As GitHub shows commits; eight letters may be a session's name."""
_SOME_NAME = re.compile(r"(?=\S{0,199}\d)(\S{7,200})[ \t]*(?=[\r\n]|\Z)")
"""Nothing that could be answered, but meant as the name of it: no words of work are like that."""
_CI = re.compile(r"ci(?=\s|\Z)[ \t]*", re.IGNORECASE)
_STOP_CI = re.compile(r"ci[ \t]*(?=[\r\n]|\Z)", re.IGNORECASE)
_EXTRA = re.compile(r"\+[ \t]*(\S*)[ \t]*(?:(?:dollars?|usd)[ \t]*(?=[\r\n]|\Z))?", re.IGNORECASE)


def _trim(text: str) -> str:
    """Without the blanks around it; the first line of text keeps its indentation, which may mean code."""
    match = _BLANK_LINES.match(text)
    return (text[match.end() :] if match else text.lstrip(" \t")).rstrip()


class _Text:
    """What stands after our word: the options before the verb, the verb, and what follows it."""

    def __init__(self, rest: str, command_word: str) -> None:
        self.command_word = command_word
        self.asks_help = rest.strip() == "--help"
        self.all, self.options = (rest, NO_OPTIONS) if self.asks_help else take(rest.lstrip(" \t"))
        match = _VERB.match(self.all)
        self.verb = match[1].lower() if match else ""
        self.after = self.all[match.end() :] if match else self.all

    @property
    def line_is_verb(self) -> bool:
        return self.after[:1] in ("", "\r", "\n")

    @property
    def stands_alone(self) -> bool:
        return self.line_is_verb and not before_tail(self.after).strip()

    def free(self) -> Run:
        return Run(_trim(self.all), self.options)

    def taken(self) -> tuple[str, Options]:
        text, options = take(self.after, self.options)
        return _trim(text), options

    def without_options(self, command: Command) -> Command:
        if self.options != NO_OPTIONS:
            raise CommandError(f"`{self.command_word} {self.verb}` takes no options.")
        return command


def _read(text: _Text) -> Command:
    if text.asks_help:
        return Help()
    if text.verb == "stop" and text.line_is_verb:  # words below it must not keep a stop from being one
        return text.without_options(Stop())
    if text.verb in _ALONE and text.stands_alone:
        return _ALONE[text.verb](text)
    reader = _WITH_TEXT.get(text.verb)
    command = (reader(text) if reader else None) or _asked_politely(text)
    if command is not None:
        return command
    _refuse_options(text)
    _refuse_misspelt(text)
    return text.free()


def _bare(command: Command) -> Callable[[_Text], Command]:
    return lambda text: text.without_options(command)


_ALONE: dict[str, Callable[[_Text], Command]] = {
    "status": _bare(Status()),
    "why": _bare(Why()),
    "cost": _bare(Cost()),
    "init": _bare(Init()),
    "help": _bare(Help()),
    "undo": _bare(Undo()),
    "retry": lambda text: Retry(text.options),
}


_HARMLESS = ("status", "why", "cost", "help")


def _asked_politely(text: _Text) -> Command | None:
    """`stop!` and `please stop now` stop: who is in a hurry must not have to say it twice, and these lose nothing."""
    word = spelling.plainly(before_tail(text.all).strip())
    if word == "stop":
        return text.without_options(Stop())
    return _ALONE[word](text) if word in _HARMLESS else None


def _ask(text: _Text) -> Command:
    prompt, options = text.taken()
    if not prompt:
        raise CommandError(
            f"What is the question? `{text.command_word} ask how is the cache invalidated?`, for example."
        )
    return Ask(prompt, options)


def _resolve(text: _Text) -> Command | None:
    prompt, options = text.taken()
    alone = text.stands_alone or not prompt
    return Resolve(prompt, options) if alone or _CONFLICTS.match(prompt) else None


def _fix_ci(text: _Text) -> Command | None:
    """Alone on its line, but for options: `fix ci caching in build.yml` is work, and so is `stop ci …`."""
    match = _CI.match(text.after)
    below, options = take(text.after[match.end() :], text.options) if match else ("nothing", NO_OPTIONS)
    return FixCi(_trim(below), options) if below[:1] in ("", "\r", "\n") else None


def _stop_ci(text: _Text) -> Command | None:
    return text.without_options(StopCi()) if _STOP_CI.match(text.after) else None


def _continue(text: _Text) -> Command:
    after, options = take(text.after, text.options)
    match = _EXTRA.match(after)
    if match is None:
        return Continue(_trim(after), None, options)
    extra = dollars(match[1])
    if extra is None:
        raise CommandError(
            f"{shown(match.group().strip())} is not an amount: `{text.command_word} continue +3` adds three dollars."
        )
    prompt, options = take(after[match.end() :], options)
    return Continue(_trim(prompt), extra, options)


def _approve(text: _Text) -> Command | None:
    if (short := _SHORT_COMMIT.match(text.after)) is not None:
        raise CommandError(
            f"{shown(short[1])} is too short a name for a commit to be approved by: write at least twelve of its "
            "letters."
        )
    match = _ANSWER.match(text.after)
    if match is None:
        _refuse_unknown_name(text)
        return None
    words = _unquoted(_trim(before_tail(text.after[match.end() :])))
    return text.without_options(Approve(words, _name(match), (match[3] or "once").lower()))


def _deny(text: _Text) -> Command | None:
    match = _ANSWER.match(text.after)
    if match is None or match[3]:
        _refuse_unknown_name(text)
        return None
    return text.without_options(Deny(_trim(before_tail(text.after[match.end() :])), _name(match)))


def _name(match: re.Match[str]) -> str | None:
    return match[2].lower() if match[2] else None


def _refuse_unknown_name(text: _Text) -> None:
    """Rather than to pay for a turn whose words are `approve` and a name that was cut off."""
    if (match := _SOME_NAME.match(text.after)) is not None:
        raise CommandError(
            f"{shown(match[1])} is not the name of anything that I ask about: it stands beside the question, such as "
            f"`{text.command_word} {text.verb} ab12cd34-1`, or is a commit, in twelve letters or more."
        )


def _unquoted(text: str) -> str:
    """A plan that was quoted to be edited, without the signs of the quotation."""
    lines = text.splitlines()
    if not lines or not all(line.startswith(">") or not line.strip() for line in lines):
        return text
    return "\n".join(line.removeprefix(">").removeprefix(" ") for line in lines).strip()


_WITH_TEXT: dict[str, Callable[[_Text], Command | None]] = {
    "ask": _ask,
    "plan": lambda text: Plan(*text.taken()),
    "review": lambda text: Review(*text.taken()),
    "resolve": _resolve,
    "fix": _fix_ci,
    "stop": _stop_ci,
    "continue": _continue,
    "approve": _approve,
    "deny": _deny,
}


def _refuse_options(text: _Text) -> None:
    """`stop --force` is no work for an agent."""
    words = before_tail(text.after).split()
    if text.verb in ("stop", *_ALONE) and words and all(word.startswith(("--", "—", "–")) for word in words):
        raise CommandError(f"`{text.command_word} {text.verb}` has no option {shown(words[0])}.")


def _refuse_misspelt(text: _Text) -> None:
    lone = before_tail(text.all).strip()
    meant = spelling.meant(lone, [form.word for form in FORMS if form.word])
    if meant:
        raise CommandError(
            f"I don't know {shown(lone)}. Did you mean `{text.command_word} {meant}`? "
            f"`{text.command_word} help` lists the commands; for work, say a few words more."
        )
