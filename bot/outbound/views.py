"""A text as a reader with a decoder would see it, with the way back to where each character stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.outbound.scrub import SPLIT

_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "num": "#", "commat": "@", "colon": ":"}
_NAMED |= {"period": ".", "lowbar": "_", "plus": "+", "sol": "/", "equals": "=", "excl": "!", "dollar": "$"}
_NAMED |= {"nbsp": "\xa0"}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_ESCAPE = re.compile(
    r"%([0-9A-Fa-f]{2})"
    r"|\\(?:u\{?0{0,4}([0-9A-Fa-f]{4})\}?|x([0-9A-Fa-f]{2})|([\\/\"'nrtbf]))"
    r"|&(?:#0{0,7}([0-9]{1,7});|#[xX]0{0,7}([0-9A-Fa-f]{1,6});|([a-z]{2,8});)"
    rf"|({SPLIT})"
)
_SPACE = re.compile(r"\s")
_WORD = re.compile(r"\S+")
UNFINISHED = re.compile(
    r"(?:%[0-9A-Fa-f]?|\\(?:u\{?[0-9A-Fa-f]*|x[0-9A-Fa-f]?)?|&#?[0-9A-Za-z]*|<(?:!(?:-(?:-(?: -{0,2})?)?)?)?)\Z"
)
"""An escape that the end of the text cuts off."""


@dataclass(frozen=True)
class View:
    """Character i stands for `[starts[i], ends[i])` of the original."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    dense: bool = False

    def span(self, start: int, end: int) -> tuple[int, int]:
        return self.starts[start], self.ends[end - 1]


def views(text: str) -> list[View]:
    """As written; escapes decoded; and all of it without white space, as wrapped base64 or hex is read.

    Each kind of escape also by itself: a value may hold what looks like one of another kind, which stays as it is. By
    `SPLIT` and entities texts are made harmless, inside of a value too."""
    split = "<" if SPLIT in text else ""
    kinds = [leads for leads in ("%", "\\", f"&{split}", split) if leads and leads[0] in text]
    decoded = (_decoded(text, leads) for leads in dict.fromkeys(("".join(dict.fromkeys("".join(kinds))), *kinds)))
    found = [View(text, range(len(text)), range(1, len(text) + 1)), *(view for view in decoded if view is not None)]
    return found + [dense for one in found if (dense := _dense(one)) is not None]


def _decoded(text: str, leads: str) -> View | None:
    """Of the escapes that begin so; None when nothing is escaped."""
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for match in _ESCAPE.finditer(text):
        char = _character(match) if match[0][0] in leads else None
        if char is not None:
            parts += (text[at : match.start()], char)
            starts += range(at, match.start() + len(char))
            ends += (*range(at + 1, match.start() + 1), *[match.end()] * len(char))
            at = match.end()
    if not parts:
        return None
    starts += range(at, len(text))
    ends += range(at + 1, len(text) + 1)
    return View("".join((*parts, text[at:])), starts, ends)


def _character(match: re.Match[str]) -> str | None:
    percent, unicode, byte, simple, decimal, hexadecimal, name, split = match.groups()
    if split is not None:
        return ""
    if name is not None:
        return _NAMED.get(name)
    if simple is not None:
        return _CONTROLS.get(simple, simple)
    code = int(decimal) if decimal is not None else int(percent or unicode or byte or hexadecimal, 16)
    return chr(code) if code < 0x110000 else None


def _dense(view: View) -> View | None:
    """None when there is no white space."""
    if not _SPACE.search(view.text):
        return None
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for match in _WORD.finditer(view.text):
        parts.append(match[0])
        starts += view.starts[match.start() : match.end()]
        ends += view.ends[match.start() : match.end()]
    return View("".join(parts), starts, ends, dense=True)
