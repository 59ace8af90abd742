"""Renders markdown within a paragraph: code, emphasis, links to the web. It looks at each sign once."""

from __future__ import annotations

import html
import re

from markupsafe import escape

from bot.text.markup import code_spans

_SIGN = re.compile(
    r"\\[!-/:-@\[-`{-~]|&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});|\*+|_+|~~+|\[|\]|<|\n"
)
_AUTOLINK = re.compile(r"<(https?://[^\s<>]{1,2000})>", re.IGNORECASE)
_ADDRESS = re.compile(
    r"""\([ \t\n]*+(?:<([^<>\n]{0,2000})>|([^\s<>()]{0,2000}(?:\([^\s<>()]{0,2000}\)[^\s<>()]{0,2000})?))
    (?:[ \t\n]++(?:"[^"]{0,500}"|'[^']{0,500}'))?[ \t\n]*+\)""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_WEB = re.compile(r"https?://[^/\s]", re.IGNORECASE)
_TAGS = {"**": "strong", "__": "strong", "*": "em", "_": "em", "~~": "s"}


def rendered(words: str) -> str:
    """Render it as in a comment, but show HTML as text."""
    writer, at = _Writer(words), 0
    for start, end in code_spans(words):
        writer.read(at, start)
        writer.code(start, end)
        at = end
    writer.read(at, len(words))
    return writer.end()


class _Writer:
    def __init__(self, words: str) -> None:
        self._words = words
        self._parts: list[str] = []
        self._open: list[tuple[str, int]] = []
        """Signs that may begin something, with their places among the parts."""
        self._known: dict[str, int] = {}
        """How many of each sign are open, so that a sign without an open partner needs no search."""
        self._skip_to = 0

    def end(self) -> str:
        return "".join(self._parts).rstrip()

    def code(self, start: int, end: int) -> None:
        if start < self._skip_to:  # in the address of a link
            return
        inside = self._words[start:end].strip("`").replace("\n", " ")
        if inside.startswith(" ") and inside.endswith(" ") and inside.strip():
            inside = inside[1:-1]
        self._parts.append(f"<code>{escape(inside)}</code>")

    def read(self, at: int, end: int) -> None:
        at = max(at, self._skip_to)
        while at < end and (match := _SIGN.search(self._words, at, end)):
            self._text(at, match.start())
            at = self._sign(match)
        self._text(at, end)

    def _text(self, start: int, end: int) -> None:
        if start < end:
            self._parts.append(str(escape(self._words[start:end])))

    def _sign(self, match: re.Match[str]) -> int:
        """Return the offset from which to read on."""
        sign = match[0]
        if sign[0] in "*_~":
            return self._emphasis(match)
        if sign == "\n":
            self._parts.append("<br />\n")
        elif sign == "[":
            self._begin("[", "[")
        elif sign == "]":
            return self._link(match.end())
        elif sign == "<":
            return self._address(match.start())
        else:
            self._parts.append(str(escape(sign[1:] if sign[0] == "\\" else html.unescape(sign))))
        return match.end()

    def _begin(self, sign: str, shown: str) -> None:
        self._open.append((sign, len(self._parts)))
        self._known[sign] = self._known.get(sign, 0) + 1
        self._parts.append(shown)

    def _take(self, sign: str) -> int | None:
        """Return the place of the latest open sign of its kind; signs opened since then stay text."""
        while self._known.get(sign):
            opened, place = self._open.pop()
            self._known[opened] -= 1
            if opened == sign:
                return place
        return None

    def _emphasis(self, match: re.Match[str]) -> int:
        run, at, end = match[0], match.start(), match.end()
        before, after = self._words[max(0, at - 1) : at], self._words[end : end + 1]
        opens = bool(after) and not after.isspace() and not (run[0] == "_" and before.isalnum())
        closes = bool(before) and not before.isspace() and not (run[0] == "_" and after.isalnum())
        for sign in self._signs(run):
            if closes and sign in _TAGS and (place := self._take(sign)) is not None:
                self._parts[place] = f"<{_TAGS[sign]}>"
                self._parts.append(f"</{_TAGS[sign]}>")
            elif opens and sign in _TAGS:
                self._begin(sign, sign)
            else:
                self._parts.append(sign)
        return end

    def _signs(self, run: str) -> list[str]:
        """Split the run into pairs and perhaps a single sign, which goes first if it ends what began last."""
        pairs, single = [run[:2]] * (len(run) // 2), [run[:1]] * (len(run) % 2)
        ends_last = bool(self._open) and self._open[-1][0] == run[:1]
        return single + pairs if ends_last else pairs + single

    def _link(self, after: int) -> int:
        place = self._take("[")
        target = _ADDRESS.match(self._words, after) if place is not None else None
        address = _web(target[1] or target[2] or "") if target is not None else None
        if place is None or target is None or address is None:
            self._parts.append("]")
            return after
        self._parts[place] = _anchor(address)
        self._parts.append("</a>")
        self._skip_to = target.end()
        return target.end()

    def _address(self, at: int) -> int:
        match = _AUTOLINK.match(self._words, at)
        address = _web(match[1]) if match is not None else None
        if match is None or address is None:
            self._parts.append("&lt;")
            return at + 1
        self._parts.append(f"{_anchor(address)}{escape(match[1])}</a>")
        self._skip_to = match.end()
        return match.end()


def _web(written: str) -> str | None:
    address = html.unescape(_ESCAPED.sub(r"\1", written))
    return address if _WEB.match(address) and address.isprintable() and " " not in address else None


def _anchor(address: str) -> str:
    return f'<a href="{escape(address)}" rel="noreferrer nofollow">'
