"""Leaves only characters that a reader sees: terminal sequences, controls and invisible characters are taken out."""

from __future__ import annotations

import re
import unicodedata

_TERMINAL = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor
    r"|(?:\x1b[]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, clipboard
    r"|\x1b[ -/]*[0-~]?"
)
_BREAK = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_PLAIN = re.compile(r"[\t\n -~]*")
_IGNORABLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\ufffc")
_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"


def visible(text: str) -> str:
    """Line breaks become newlines; tabs stay."""
    if _PLAIN.fullmatch(text):
        return text
    text = _BREAK.sub("\n", _TERMINAL.sub("", text))
    shown = [char if _is_shown(char) else "" for char in text]
    for at, char in enumerate(text):
        if char in (_JOINER, _EMOJI_STYLE) and _in_emoji(text, at):
            shown[at] = char
    return "".join(shown)


def _is_shown(char: str) -> bool:
    if char in "\n\t":
        return True
    code = ord(char)
    if char in _IGNORABLE or 0xFE00 <= code <= 0xFE0F or 0xE0000 <= code <= 0xEFFFF:
        return False
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def _in_emoji(text: str, at: int) -> bool:
    """A style after a pictograph; a joiner between two."""
    before = text[at - 1 : at].replace(_EMOJI_STYLE, text[max(0, at - 2) : at - 1] or " ")
    if not before or unicodedata.category(before[0]) not in ("So", "Sk"):
        return False
    return text[at] == _EMOJI_STYLE or unicodedata.category(text[at + 1 : at + 2] or " ") == "So"
