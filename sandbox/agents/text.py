"""Makes what a program printed fit to be shown: no terminal codes, no control characters, bounded."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

REPLACEMENT = "\ufffd"
_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links, the clipboard
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_SPACES = re.compile(r"\s+")


def storable(text: str) -> str:
    """No NUL (PostgreSQL refuses it) and no half of a surrogate pair (UTF-8 has none)."""
    if text.isascii() and "\0" not in text:
        return text
    return _SURROGATES.sub(REPLACEMENT, text).replace("\0", REPLACEMENT)


def clean(text: str) -> str:
    """As a terminal would have left it: codes gone, and of a line overwritten by carriage returns its last state."""
    plain = _ESCAPES.sub("", storable(text)).replace("\r\n", "\n")
    if "\r" in plain:
        plain = "\n".join(_last_state(line) for line in plain.split("\n"))
    return _CONTROLS.sub("", plain)


def one_line(text: str, limit: int = 160) -> str:
    """For titles: one line, also without characters that reorder or hide text."""
    shown = "".join(
        character
        for character in clean(text[: limit * 8])
        if character.isascii() or unicodedata.category(character) != "Cf"
    )
    return shorten(_SPACES.sub(" ", shown).strip(), limit)


def first_lines(text: str, *, lines: int = 12, limit: int = 1200) -> str:
    """The beginning of a tool's result."""
    kept = clean(text[: limit * 8]).strip("\n").split("\n")
    return shorten("\n".join(line.rstrip() for line in kept[:lines]), limit)


def shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def same_around(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines are the same at the beginning of both, and then at their end."""
    most = min(len(old), len(new))
    begin = next((at for at in range(most) if old[at] != new[at]), most)
    end = next((at for at in range(most - begin) if old[-1 - at] != new[-1 - at]), most - begin)
    return begin, end


def _last_state(line: str) -> str:
    parts = [part for part in line.split("\r") if part]
    return parts[-1] if parts else ""
