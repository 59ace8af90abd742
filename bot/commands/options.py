"""The options of a command, anywhere on its line outside code and quotations: their names and values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from bot.errors import CommandError
from bot.text.likeness import is_near
from bot.text.markup import code_spans, shown


@dataclass(frozen=True)
class Options:
    """A person's settings for one turn; None leaves it to the repository or the operator."""

    model: str | None = None
    fallback: str | None = None
    """The model that goes on when the first is overloaded or not available."""
    budget_usd: float | None = None
    timeout_seconds: float | None = None
    base: str | None = None
    turns: int | None = None
    effort: str | None = None
    """How hard the model thinks."""
    folder: str | None = None
    """The folder of the repository that the request is about."""
    queue: bool = False
    """Wait for the next turn, even if the words could reach the running one."""
    new_branch: bool = False
    """Make a separate branch and pull request."""


NO_OPTIONS = Options()
EFFORTS = ("low", "medium", "high", "xhigh", "max")
USAGE = {
    "model": "--model NAME",
    "fallback": "--fallback NAME",
    "budget": "--budget 5",
    "timeout": "--timeout 30m",
    "base": "--base branch",
    "turns": "--turns 20",
    "effort": "--effort high",
    "in": "--in services/pay",
    "queue": "--queue",
    "new-branch": "--new-branch",
}

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,99}\Z")
_REF = re.compile(r"(?!refs/)(?!.*(?:\.\.|//|@\{|/\.))[A-Za-z0-9_@][A-Za-z0-9/_.#+,@-]{0,199}(?<![./])(?<!\.lock)\Z")
_DOLLARS = re.compile(r"\$?(\d{1,6}(?:\.\d{1,4})?|\.\d{1,4})\$?\Z")
_SPAN = re.compile(r"(?:(\d{1,3})h)?(?:(\d{1,5})m(?:in)?)?(?:(\d{1,6})s)?\Z")
_SIGN = re.compile(r"(?<!\S)(--|—|–)([A-Za-z][\w-]*)(=\S*)?")
"""Phones turn two hyphens into a dash."""
_VALUE = re.compile(r"[ \t]+(?!--|—|–)(\S+)")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|(?<!\w)'[^']*'(?!\w)")
_PART_OF_THE_TASK = re.compile(r"(?<!\w)(?:an?|the|new|old|its|named|called|option|flag|switch)\s*\Z", re.IGNORECASE)
_NAMES_THE_OPTION = re.compile(r"\s+(?:options?|flags?|switch(?:es)?|arguments?|parameters?)\b", re.IGNORECASE)
_NEARBY = 20
_ENDS_SENTENCE = ",;:!?"
_SHORT = ("in",)
"""Words that people also write behind a dash; nearly every short word is near to one of them."""
MAX_FOLDER = 500
_PUNCTUATION = re.compile(r"[,;:!?.]+")
_FLAGS = {"queue": "queue", "new-branch": "new_branch"}
"""Options without a value."""
_IN_BACKTICKS = "(If this belongs to the task itself, put it in backticks.)"


def dollars(text: str) -> float | None:
    """Read an amount such as `5`, `$5` or `0.50`; None for anything else, and for zero."""
    match = _DOLLARS.match(text)
    return (float(match[1]) or None) if match else None


def _matching(pattern: re.Pattern[str], problem: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not pattern.match(text):
            raise CommandError(f"{shown(text)} {problem}, for example.")
        return text

    return read


def _budget(text: str) -> float:
    amount = dollars(text)
    if amount is None:
        raise CommandError(
            f"`--budget` takes an amount in US dollars above zero, such as `--budget 5`, not {shown(text)}."
        )
    return amount


def _timeout(text: str) -> float:
    match = _SPAN.match(text)
    if text.isascii() and text.isdigit() and len(text) <= 5:
        seconds = int(text) * 60
    elif match:
        hours, minutes, rest = (int(part or 0) for part in match.groups())
        seconds = hours * 3600 + minutes * 60 + rest
    else:
        seconds = 0
    if not 0 < seconds <= 24 * 3600:
        raise CommandError(
            f"`--timeout` takes a time of at most a day, such as `30m`, `90s` or `1h30m`, not {shown(text)}."
        )
    return float(seconds)


def _turns(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and int(text) > 0):
        raise CommandError(f"`--turns` takes a whole number from 1 to 9999, not {shown(text)}.")
    return int(text)


def _effort(text: str) -> str:
    if text.lower() not in EFFORTS:
        *others, last = EFFORTS
        raise CommandError(f"`--effort` takes {', '.join(others)} or {last}, not {shown(text)}.")
    return text.lower()


def folder(text: str) -> str:
    """Read a path from the root of the repository. Whether it is there, only the repository knows."""
    path = text.removeprefix("./").rstrip("/")
    parts = path.split("/")
    if not path.isprintable() or len(path) > MAX_FOLDER or any(part in ("", ".", "..", ".git") for part in parts):
        raise CommandError(
            f"`--in` takes the path of a folder from the repository's root: `--in services/pay`, not {shown(text)}."
        )
    return path


_READERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "model": ("model", _matching(_MODEL, "is not the name of a model: `--model claude-opus-5-5`")),
    "fallback": ("fallback", _matching(_MODEL, "is not the name of a model: `--fallback claude-sonnet-5-5`")),
    "budget": ("budget_usd", _budget),
    "timeout": ("timeout_seconds", _timeout),
    "base": ("base", _matching(_REF, "cannot be the name of a branch: `--base main`")),
    "turns": ("turns", _turns),
    "effort": ("effort", _effort),
    "in": ("folder", folder),
}


def take(text: str, options: Options = NO_OPTIONS) -> tuple[str, Options]:
    """Take the options out of the text's first line; they add to the given ones.

    A CommandError explains words that look like options and are none: an agent should not read `--bugdet 5`."""
    end = min((at for at in (text.find("\n"), text.find("\r")) if at >= 0), default=len(text))
    line, kept, at = text[:end], list[str](), 0
    seen = _masked(line)
    for sign in _SIGN.finditer(seen):
        if sign.start() < at or (name := _meant(sign, seen)) is None:
            continue
        value, after = _value_of(name, sign, line)
        options = _set(options, name, value, hint=_IN_BACKTICKS if sign.start() else "")
        kept.append(line[at : sign.start()].strip(" \t"))
        at = after
    if not kept:
        return text, options
    return " ".join(filter(None, (*kept, line[at:].strip(" \t")))) + text[end:], options


def read(values: Mapping[str, str | None]) -> Options:
    """Read options that a command line has already told apart."""
    options = NO_OPTIONS
    for name, value in values.items():
        if value is not None:
            options = _set(options, name, value.strip())
    return options


def over(newer: Options, older: Options) -> Options:
    """Return the newer options, and the older ones where they say nothing."""
    said = {name: value for name, value in asdict(newer).items() if value not in (None, False)}
    return replace(older, **said)


def _masked(line: str) -> str:
    """Blank out code and quotations, letter by letter."""
    if not any(sign in line for sign in ("--", "—", "–")):
        return ""
    seen = list(line)
    for start, end in [*code_spans(line), *(found.span() for found in _QUOTED.finditer(line))]:
        seen[start:end] = "x" * (end - start)
    return "".join(seen)


def _meant(sign: re.Match[str], line: str) -> str | None:
    """Return the option's name; None for a dash in a sentence. Refuse what may belong to the task as well."""
    name, written = sign[2].lower(), f"--{sign[2]}"
    near = next((one for one in USAGE if one not in _SHORT and is_near(name, one)), None)
    value = _VALUE.match(line, sign.end())
    is_word = name in _SHORT and "/" not in (sign[3] or (value[1] if value else ""))
    if sign[1] != "--" and (is_word if name in USAGE else near is None):
        return None
    if name not in USAGE:
        known = ", ".join(f"`{usage}`" for usage in USAGE.values())
        way_on = f"Did you mean `{USAGE[near]}`?" if near else f"I know {known}."
        raise CommandError(f"I don't know the option {shown(written)}. {way_on} {_IN_BACKTICKS}")
    before = line[max(0, sign.start() - _NEARBY) : sign.start()]
    if _PART_OF_THE_TASK.search(before) or _NAMES_THE_OPTION.match(line, sign.end()):
        raise CommandError(
            f"Is {shown(written)} meant for me, or does it belong to the task? For me, put it at the end of the line; "
            "for the task, put it in backticks."
        )
    return name


def _value_of(name: str, sign: re.Match[str], line: str) -> tuple[str, int]:
    """Return the option's value, and where it ends; the comma behind it belongs to the sentence."""
    if name in _FLAGS:
        if sign[3]:
            raise CommandError(f"`--{name}` takes no value. {_IN_BACKTICKS}")
        end = _PUNCTUATION.match(line, sign.end())
        return "", end.end() if end else sign.end()
    found = None if sign[3] else _VALUE.match(line, sign.end())
    value = sign[3][1:] if sign[3] else found[1] if found else ""
    if not value:
        raise CommandError(f"`--{name}` needs a value: `{USAGE[name]}`. {_IN_BACKTICKS}")
    return value.rstrip(_ENDS_SENTENCE), found.end() if found else sign.end()


def _set(options: Options, name: str, value: str = "", *, hint: str = "") -> Options:
    changed: dict[str, Any]
    if name in _FLAGS:
        changed = {_FLAGS[name]: True}
    else:
        field, read = _READERS[name]
        if getattr(options, field) is not None:
            raise CommandError(f"`--{name}` appears twice; once is enough.")
        try:
            changed = {field: read(value)}
        except CommandError as error:
            raise CommandError(f"{error} {hint}".rstrip()) from None
    return replace(options, **changed)
