"""A settings file: lines of NAME=value as in a `.env`, with quotes, comments and values of several lines."""

from __future__ import annotations

import re
from pathlib import Path

from bot.errors import SettingsError

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=[ \t]*(.*)", re.DOTALL)
_COMMENT = re.compile(r"(?:^|\s)#.*")
_QUOTED = {
    "'": re.compile(r"'([^']*)'[ \t]*(?:#.*)?"),
    '"': re.compile(r'"((?:[^"\\]|\\.)*)"[ \t]*(?:#.*)?', re.DOTALL),
}
_ESCAPED = re.compile(r"\\([n\"\\$])")


def read(path: Path) -> dict[str, str]:
    """A SettingsError names the file and the line, never what stands there: it may be a secret."""
    lines = _text(path).splitlines()
    values: dict[str, str] = {}
    number = 0
    while number < len(lines):
        begun, line = number + 1, lines[number].strip()
        number += 1
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise SettingsError(f"Line {begun} of {path} is not NAME=value.")
        name, value = match.groups()
        if value[:1] in _QUOTED:
            values[name], number = _quoted(value, lines, number, f"Line {begun} of {path}")
        else:
            values[name] = _COMMENT.sub("", value).strip()
    return values


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(f"The settings file {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"The settings file {path} is not UTF-8 text.") from None


def _quoted(value: str, lines: list[str], number: int, where: str) -> tuple[str, int]:
    """The value without its quotes, and the number of the line after it."""
    quote = value[0]
    while (match := _QUOTED[quote].fullmatch(value)) is None:
        if number == len(lines) or _closed(value, quote):
            raise SettingsError(f"{where} has a quote that is not closed, or something after the closing one.")
        value += "\n" + lines[number]
        number += 1
    inner = match[1]
    return (_ESCAPED.sub(_unescaped, inner) if quote == '"' else inner), number


def _closed(value: str, quote: str) -> bool:
    return _QUOTED[quote].match(value) is not None


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
