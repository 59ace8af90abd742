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
    """Read the file. A SettingsError names the file and the line but never quotes it: it may hold a secret."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise SettingsError(f"The settings file {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"The settings file {path} is not UTF-8 text.") from None
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


def _quoted(value: str, lines: list[str], number: int, where: str) -> tuple[str, int]:
    """Return the value without its quotes, and the number of the line after it."""
    pattern = _QUOTED[value[0]]
    while (match := pattern.fullmatch(value)) is None:
        if number == len(lines) or pattern.match(value):
            raise SettingsError(f"{where} has a quote that is not closed, or something after the closing one.")
        value += "\n" + lines[number]
        number += 1
    if value[0] == "'":
        return match[1], number
    return _ESCAPED.sub(lambda escaped: "\n" if escaped[1] == "n" else escaped[1], match[1]), number
