"""Remove secrets from text: registered values in every common encoding, and whatever looks like a token."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.outbound.neutralise import SPLIT

SHORTEST = 6  # a shorter value would redact ordinary words

PEM_BODY = 16_384
_B64 = "A-Za-z0-9_-"
_JWT_HEAD = 1_000
"""Without this bound every `eyJ` in a flood of them would be read to its end."""
TOKEN = re.compile(
    r"gh[opurs]_[A-Za-z0-9._-]{36,}"  # both formats of installation tokens: 40 characters, or one that holds a JWT
    r"|github_pat_[A-Za-z0-9_]{22,}"
    r"|sk-(?:ant-|proj-)?[A-Za-z0-9_-]{20,}"
    r"|fht_[A-Za-z0-9_-]{20,}"
    r"|e2b_[A-Za-z0-9_-]{16,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|AIza[A-Za-z0-9_-]{35}"
    r"|glpat-[A-Za-z0-9_-]{20,}"
    r"|npm_[A-Za-z0-9]{36,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}"
    r"|[sr]k_live_[A-Za-z0-9]{16,}"
    r"|hf_[A-Za-z0-9]{34,}"
    r"|pypi-AgE[A-Za-z0-9_-]{50,}"
    r"|ya29\.[A-Za-z0-9_-]{20,}"
    r"|do[opr]_v1_[a-f0-9]{64}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}"
    rf"|eyJ[{_B64}]{{8,{_JWT_HEAD}}}+\.[{_B64}]{{8,}}+\.[{_B64}]{{8,}}"
    r"|(?<=://)[^\s/:@\[\]<>]*:[^\s/@\[\]<>]+(?=@)"
)
PEM = re.compile(
    rf"-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY-----(?:(?!-----END)[\s\S]){{0,{PEM_BODY}}}"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----)?"
)
OPEN_PEM = re.compile(r"-----BEGIN(?:\Z| [A-Z0-9 ]{0,40}(?:-{0,5}\Z|PRIVATE KEY-----))")
END_PEM = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----")


def parts(value: str) -> list[str]:
    """Return what is secret by itself: the whole value, and each long line of a key."""
    whole = value.strip()
    lines = [line.strip() for line in whole.splitlines() if not line.startswith("-----")]
    found = [whole, *(line for line in lines if len(line) >= 16)]
    return [one for one in dict.fromkeys(found) if len(one) >= SHORTEST]


def encodings(value: str) -> frozenset[str]:
    """Return the forms that hide the value's characters; `views` undoes escapes (URL, JSON, HTML, markdown)."""
    raw = value.encode("utf-8", "surrogatepass")
    found = {value, value[::-1], "".join(value.split()), raw.decode("latin-1"), raw.hex(), raw.hex().upper()}
    for shift in range(3):
        found.add(_base64_core(raw, shift))
        found.add(_base64_core(raw, shift).translate(str.maketrans("+/", "-_")))
    return frozenset(form for form in found if len(form) >= SHORTEST)


def _base64_core(raw: bytes, shift: int) -> str:
    """Return the characters that depend on the value alone, if it stands `shift` bytes after a multiple of three."""
    text = base64.b64encode(b"\0" * shift + raw).decode("ascii")
    return text[-(-8 * shift // 6) : 8 * (shift + len(raw)) // 6]


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
_MARKDOWN = re.compile(r"\\([!-/:-@\[-`{-~])")
"""Read by itself, because it begins like another escape and may stand before one."""
_SPACE = re.compile(r"\s")
_WORD = re.compile(r"\S+")
UNFINISHED = re.compile(
    r"(?:%[0-9A-Fa-f]?|\\(?:u\{?[0-9A-Fa-f]*|x[0-9A-Fa-f]?)?|&#?[0-9A-Za-z]*|<(?:!(?:-(?:-(?: -{0,2})?)?)?)?)\Z"
)


@dataclass(frozen=True)
class DecodedView:
    """A text in which character i stands for `[starts[i], ends[i])` of the original."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    dense: bool = False

    def span(self, start: int, end: int) -> tuple[int, int]:
        return self.starts[start], self.ends[end - 1]


def views(text: str) -> list[DecodedView]:
    """Return the text as written, with escapes decoded, and each of these without white space, as wrapped base64 or hex
    is read. Each kind of escape is also decoded by itself: a value may hold what looks like an escape of another kind.
    `SPLIT` and entities make texts harmless, inside of a value too."""
    split = "<" if SPLIT in text else ""
    kinds = [leads for leads in ("%", "\\", f"&{split}", split) if leads and leads[0] in text]
    decoded = (_decoded(text, leads) for leads in dict.fromkeys(("".join(dict.fromkeys("".join(kinds))), *kinds)))
    plain = _decoded(text, "\\", _MARKDOWN) if "\\" in text else None
    found = [DecodedView(text, range(len(text)), range(1, len(text) + 1)), *filter(None, (*decoded, plain))]
    return found + [dense for one in found if (dense := _dense(one)) is not None]


def _decoded(text: str, leads: str, form: re.Pattern[str] = _ESCAPE) -> DecodedView | None:
    """Decode the escapes of this form that begin so; None if there are none."""
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for match in form.finditer(text):
        char = match[1] if form is _MARKDOWN else _character(match) if match[0][0] in leads else None
        if char is not None:
            parts += (text[at : match.start()], char)
            starts += range(at, match.start() + len(char))
            ends += (*range(at + 1, match.start() + 1), *[match.end()] * len(char))
            at = match.end()
    if not parts:
        return None
    starts += range(at, len(text))
    ends += range(at + 1, len(text) + 1)
    return DecodedView("".join((*parts, text[at:])), starts, ends)


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


def _dense(view: DecodedView) -> DecodedView | None:
    """Leave out white space; None if there is none."""
    if not _SPACE.search(view.text):
        return None
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for match in _WORD.finditer(view.text):
        parts.append(match[0])
        starts += view.starts[match.start() : match.end()]
        ends += view.ends[match.start() : match.end()]
    return DecodedView("".join(parts), starts, ends, dense=True)


REDACTED = "[redacted]"
LONGEST_WORD = 1 << 18
SHORT = 256
"""So much may be read again with each piece that follows it."""
Span = tuple[int, int]


class Redactor:
    """Holds the values; its repr does not. Threads may ask it while values come and go."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms: dict[str, frozenset[str]] = {}
        self._by_start: dict[str, tuple[str, ...]] = {}
        """Tuples are replaced, never changed, so that every reader has a whole one."""
        self.version = 0
        """Grows with each value that becomes known: what was redacted before may show it."""
        for value in values:
            self.register(value)

    def __repr__(self) -> str:
        return f"Redactor({len(self._forms)} values)"

    def register(self, value: str) -> None:
        if value not in self._forms:
            forms = frozenset(form for part in parts(value) for form in encodings(part))
            self._forms[value] = forms
            for form in forms:
                self._by_start[form[:SHORTEST]] = (*self._by_start.get(form[:SHORTEST], ()), form)
            self.version += 1

    def forget(self, value: str) -> None:
        for form in self._forms.pop(value, ()):
            start = form[:SHORTEST]
            left = list(self._by_start[start])
            left.remove(form)
            self._by_start[start] = tuple(left)
            if not left:
                del self._by_start[start]

    def redact(self, text: str) -> str:
        return _without(text, self.spans(text))

    def redact_lines(self, lines: Sequence[str]) -> list[str]:
        """Redact lines that stand below each other, also a secret that spans several; each stays one line."""
        spans, found, at, first = self.spans("\n".join(lines)), list[str](), 0, 0
        for line in lines:
            end, last = at + len(line), first
            while last < len(spans) and spans[last][0] < end:
                last += 1
            inside = [(max(start, at) - at, min(stop, end) - at) for start, stop in spans[first:last] if stop > at]
            found.append(_without(line, inside))
            at = end + 1
            while first < len(spans) and spans[first][1] <= at:
                first += 1
        return found

    def stream(self) -> Stream:
        return Stream(self)

    def all_forms(self) -> list[str]:
        return [form for forms in self._forms.values() for form in forms]

    def spans(self, text: str) -> list[Span]:
        """Find secrets, in order; those that overlap are one."""
        found: list[Span] = []
        for view in views(text):
            found += (view.span(*place) for place in self._places(view.text))
            if not view.dense:  # without white space a token would run into the next word
                found += (view.span(*match.span()) for match in TOKEN.finditer(view.text))
                found += (view.span(*match.span()) for match in PEM.finditer(view.text))
        return _merged(found)

    def _places(self, text: str) -> Iterable[Span]:
        """Pass over the text once, however many forms there are: a key alone has hundreds."""
        starts = self._by_start
        for at in [at for at in range(len(text) - SHORTEST + 1) if text[at : at + SHORTEST] in starts]:
            for form in starts.get(text[at : at + SHORTEST], ()):
                if text.startswith(form, at):
                    yield at, at + len(form)


def _merged(found: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(found):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _without(text: str, spans: Iterable[Span]) -> str:
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += (text[at:start], REDACTED)
        at = end
    return "".join((*parts, text[at:]))


class Stream:
    """Redacts text that comes in pieces. It holds back whatever could still become a secret, so that any way of cutting
    a text gives what `redact` gives for the whole, except words longer than `LONGEST_WORD`."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""
        self._fresh: list[str] = []
        self._waits_for = 0

    def feed(self, chunk: str) -> str:
        self._fresh.append(chunk)
        self._waits_for -= len(chunk)
        if self._waits_for > 0:
            return ""
        self._held += "".join(self._fresh)
        self._fresh.clear()
        spans = self._redactor.spans(self._held)
        cut = self._safe_cut(spans)
        out = _without(self._held[:cut], [span for span in spans if span[1] <= cut])
        self._held = self._held[cut:]
        # Else one endless word would be read again with every piece of it.
        self._waits_for = len(self._held) if len(self._held) > SHORT else 0
        return out

    def end(self) -> str:
        out, self._held = self._redactor.redact(self._held + "".join(self._fresh)), ""
        self._fresh.clear()
        self._waits_for = 0
        return out

    def _safe_cut(self, spans: list[Span]) -> int:
        """Cut behind white space, and before anything that more text could make part of a secret."""
        limit = _first_doubt(self._held, self._redactor.all_forms())
        if len(self._held) > LONGEST_WORD:
            limit = max(limit, len(self._held) - LONGEST_WORD // 2)
        cut = _after_space(self._held, limit)
        if cut == 0 and len(self._held) > LONGEST_WORD:
            cut = limit
        for start, end in reversed(spans):
            if start < cut < end:
                cut = _after_space(self._held, start)
        return cut


def _after_space(text: str, limit: int) -> int:
    """Find the last white space; a comment that may split a word is part of the word."""
    at = limit
    while at > 0 and not (text[at - 1].isspace() and text[max(0, at - 5) : at] != "<!-- "):
        at -= 1
    return at


def _first_doubt(text: str, forms: list[str]) -> int:
    """Return the first place from which the text's end may be the beginning of a secret."""
    doubts = [len(text)]
    unfinished = UNFINISHED.search(text, max(0, len(text) - 24))
    shapes = views(text)
    if unfinished:
        doubts.append(unfinished.start())
        shapes += views(text[: unfinished.start()])
    for view in shapes:
        doubts += (view.starts[at] for form in forms if (at := _beginning(view.text, form)) is not None)
        here = view.text
        ends = [match.end() for match in END_PEM.finditer(here, max(0, len(here) - 2 * PEM_BODY))]
        if key := OPEN_PEM.search(here, max([len(here) - PEM_BODY - 200, 0, *ends])):  # its end may still come
            doubts.append(view.starts[key.start()])
    return min(doubts)


def _beginning(text: str, form: str) -> int | None:
    """Find the longest end of the text that is a beginning of the form."""
    at = text.find(form[0], max(0, len(text) - len(form) + 1))
    while at >= 0:
        if form.startswith(text[at:]):
            return at
        at = text.find(form[0], at + 1)
    return None
