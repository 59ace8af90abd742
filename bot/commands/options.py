"""The options of a command: their names, their values, and where on the line they may be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from bot.errors import CommandError
from bot.text.likeness import is_near
from bot.text.markup import shown


@dataclass(frozen=True)
class Options:
    """A person's settings for one turn; None leaves it to the repository or the operator."""

    model: str | None = None
    budget_usd: float | None = None
    timeout_seconds: float | None = None
    base: str | None = None
    turns: int | None = None
    queue: bool = False
    """Wait for the next turn, even if the words could reach the running one."""
    new_branch: bool = False
    """Make a separate branch and pull request."""


NO_OPTIONS = Options()
USAGE = {
    "model": "--model NAME",
    "budget": "--budget 5",
    "timeout": "--timeout 30m",
    "base": "--base branch",
    "turns": "--turns 20",
    "queue": "--queue",
    "new-branch": "--new-branch",
}

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,99}\Z")
_REF = re.compile(r"(?!refs/)(?!.*(?:\.\.|//|@\{|/\.))[A-Za-z0-9_@][A-Za-z0-9/_.#+,@-]{0,199}(?<![./])(?<!\.lock)\Z")
_DOLLARS = re.compile(r"\$?(\d{1,6}(?:\.\d{1,4})?|\.\d{1,4})\$?\Z")
_SPAN = re.compile(r"(?:(\d{1,3})h)?(?:(\d{1,5})m(?:in)?)?(?:(\d{1,6})s)?\Z")
_LEADING = re.compile(r"(?:--|—|–)([A-Za-z][\w-]*)(?:=|[ \t]+|(?=[\r\n]|\Z))")
_VALUE = re.compile(r"\S+")
_DASHES = ("--", "—", "–")
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


_READERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "model": ("model", _matching(_MODEL, "is not the name of a model: `--model claude-opus-5-5`")),
    "budget": ("budget_usd", _budget),
    "timeout": ("timeout_seconds", _timeout),
    "base": ("base", _matching(_REF, "cannot be the name of a branch: `--base main`")),
    "turns": ("turns", _turns),
}


def take(text: str, options: Options = NO_OPTIONS) -> tuple[str, Options]:
    """Take options from the start of the text and the end of its first line; they override the given ones."""
    text, options = _take_leading(text, options)
    return _take_trailing(text, options)


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


def _set(options: Options, name: str, value: str = "") -> Options:
    changed: dict[str, Any]
    if name in _FLAGS:
        changed = {_FLAGS[name]: True}
    else:
        field, read = _READERS[name]
        if getattr(options, field) is not None:
            raise CommandError(f"`--{name}` appears twice; once is enough.")
        changed = {field: read(value)}
    return replace(options, **changed)


def _take_leading(text: str, options: Options) -> tuple[str, Options]:
    while match := _LEADING.match(text):
        name = match[1].lower()
        if name in _FLAGS:
            options, text = _set(options, name), text[match.end() :].lstrip(" \t")
            continue
        if name not in _READERS:
            known = ", ".join(f"`{usage}`" for usage in USAGE.values())
            raise CommandError(f"I don't know the option {shown('--' + match[1])}. I know {known}.")
        value = _VALUE.match(text, match.end())
        if value is None:
            raise CommandError(f"`--{name}` needs a value: `{USAGE[name]}`.")
        options = _set(options, name, value.group())
        text = text[value.end() :].lstrip(" \t")
    return text, options


def _take_trailing(text: str, options: Options) -> tuple[str, Options]:
    end = min((at for at in (text.find("\n"), text.find("\r")) if at >= 0), default=len(text))
    line, below = text[:end], text[end:]
    while found := _last_option(line):
        line, name, value = found
        try:
            options = _set(options, name, value)
        except CommandError as error:
            raise CommandError(f"{error} {_IN_BACKTICKS}") from None
    _refuse_misspelt(line)
    return line + below, options


def _refuse_misspelt(line: str) -> None:
    """Refuse `--bugdet 5` at the end of the line: an agent should not read it, and the limit would not count."""
    for at, word in enumerate(reversed(line.split()[-2:])):
        name, _, value = word.partition("=")
        said = _named(name)
        near = [one for one in USAGE if said != one and is_near(said, one)] if said else []
        if near and (bool(at or value) is (near[0] not in _FLAGS)):
            raise CommandError(
                f"I don't know the option {shown(name)}. Did you mean `{USAGE[near[0]]}`? {_IN_BACKTICKS}"
            )


def _last_option(line: str) -> tuple[str, str, str] | None:
    words = line.rsplit(None, 2)
    if not words:
        return None
    before = line.rstrip()[: -len(words[-1])].rstrip(" \t")
    if _named(words[-1]) in _FLAGS:
        return before, _named(words[-1]), ""
    name, equals, value = words[-1].partition("=")
    if equals and value and _known(name):
        return before, _known(name), value
    if len(words) >= 2 and _known(words[-2]):
        return before.rstrip()[: -len(words[-2])].rstrip(" \t"), _known(words[-2]), words[-1]
    return None


def _known(word: str) -> str:
    return name if (name := _named(word)) in _READERS else ""


def _named(word: str) -> str:
    dash = next((one for one in _DASHES if word.startswith(one)), None)
    return word.removeprefix(dash).lower() if dash else ""
