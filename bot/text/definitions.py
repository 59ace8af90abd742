"""Knows link definitions (`[name]: address "title"`), which stand at the beginning of a paragraph and draw nothing."""

from __future__ import annotations

import re

LONGEST_NAME = 999
_NAME = re.compile(rf"\[((?:[^\[\]\\]|\\.){{1,{LONGEST_NAME}}}+)\]:", re.DOTALL)
_GAP = re.compile(r"[ \t]*+(?:\n[ \t]*+)?+")
_ADDRESS = re.compile(r"<(?:[^<>\\\n]|\\.)*+>|(?!<)[^\s\x00-\x1f\x7f]++")
_TITLES = {
    '"': re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL),
    "'": re.compile(r"'(?:[^'\\]|\\.)*+'", re.DOTALL),
    "(": re.compile(r"\((?:[^()\\]|\\.)*+\)", re.DOTALL),
}
_LINE_END = re.compile(r"[ \t]*+(?:\n|\Z)")


def leading(text: str) -> list[int]:
    """Where each definition ends that the text of a paragraph begins with: behind its last line."""
    reader, found, at = _Reader(text), [], 0
    while (end := reader.definition(at)) is not None:
        found.append(end)
        at = end
    return found


class _Reader:
    """Remembers which titles never end, so that none is looked for twice."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._endless: set[str] = set()

    def definition(self, at: int) -> int | None:
        if not (name := _NAME.match(self._text, at)) or not name[1].strip():
            return None
        gap = _GAP.match(self._text, name.end())
        address = _ADDRESS.match(self._text, gap.end()) if gap else None
        if address is None or not _balanced(address[0]):
            return None
        plain = _LINE_END.match(self._text, address.end())
        return self._titled(address.end()) or (plain.end() if plain else None)

    def _titled(self, at: int) -> int | None:
        gap = _GAP.match(self._text, at)
        if gap is None or gap.end() == at:
            return None
        sign = self._text[gap.end() : gap.end() + 1]
        if sign not in _TITLES or sign in self._endless:
            return None
        title = _TITLES[sign].match(self._text, gap.end())
        if title is None:
            if sign != "(":  # which another one ends as well
                self._endless.add(sign)
            return None
        end = _LINE_END.match(self._text, title.end())
        return end.end() if end else None


def _balanced(address: str) -> bool:
    """An address without angle brackets has its parentheses in pairs."""
    if address.startswith("<") or not ("(" in address or ")" in address):
        return True
    depth = 0
    for sign in re.findall(r"\\.|[()]", address):
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return False
    return depth == 0
