"""Takes secrets out of text: registered values in every common encoding, and whatever looks like a token."""

from __future__ import annotations

from collections.abc import Iterable

from bot.outbound import needles
from bot.outbound.needles import SHORTEST
from bot.outbound.views import UNFINISHED, View, views

REDACTED = "[redacted]"
LONGEST_WORD = 1 << 18
SHORT = 256
"""What may be read again with each piece that follows it."""
Span = tuple[int, int]


class Redactor:
    """Holds the values; its repr does not. Threads may ask it while values come and go."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms: dict[str, frozenset[str]] = {}
        self._by_start: dict[str, tuple[str, ...]] = {}
        """Replaced, never changed: whoever reads one has it whole."""
        for value in values:
            self.register(value)

    def __repr__(self) -> str:
        return f"Redactor({len(self._forms)} values)"

    def register(self, value: str) -> None:
        if value not in self._forms:
            forms = frozenset(form for part in needles.parts(value) for form in needles.forms(part))
            self._forms[value] = forms
            for form in forms:
                self._by_start[form[:SHORTEST]] = (*self._by_start.get(form[:SHORTEST], ()), form)

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

    def stream(self) -> Stream:
        return Stream(self)

    def all_forms(self) -> list[str]:
        return [form for forms in self._forms.values() for form in forms]

    def spans(self, text: str) -> list[Span]:
        """Where secrets stand, in order; those that overlap are one."""
        found: list[Span] = []
        for view in views(text):
            found += (view.span(*place) for place in self._places(view.text))
            if not view.dense:  # without white space a token would run into the next word
                found += (view.span(*match.span()) for match in needles.TOKEN.finditer(view.text))
                found += (view.span(*match.span()) for match in needles.PEM.finditer(view.text))
        return _merged(found)

    def _places(self, text: str) -> Iterable[Span]:
        """One pass over the text, however many forms there are: a key alone has hundreds."""
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
    """Redacts text that comes in pieces. What could still become a secret is held back, so that any way of cutting
    a text gives what `redact` gives for the whole (words longer than `LONGEST_WORD` apart)."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""
        self._fresh: list[str] = []
        self._waits_for = 0

    def feed(self, chunk: str) -> str:
        """What may be shown now."""
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
        """The rest."""
        out, self._held = self._redactor.redact(self._held + "".join(self._fresh)), ""
        self._fresh.clear()
        self._waits_for = 0
        return out

    def _safe_cut(self, spans: list[Span]) -> int:
        """After a white space, before anything that more text could make part of a secret."""
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
    """A comment that may be one by which a word was split is part of the word."""
    at = limit
    while at > 0 and not (text[at - 1].isspace() and text[max(0, at - 5) : at] != "<!-- "):
        at -= 1
    return at


def _first_doubt(text: str, forms: list[str]) -> int:
    """The first place from which the text's end may be the beginning of a secret."""
    doubts = [len(text)]
    unfinished = UNFINISHED.search(text, max(0, len(text) - 24))
    shapes = views(text)
    if unfinished:
        doubts.append(unfinished.start())
        shapes += views(text[: unfinished.start()])
    for view in shapes:
        doubts += (view.starts[at] for form in forms if (at := _beginning(view.text, form)) is not None)
        at = _open_pem(view)
        if at is not None:
            doubts.append(view.starts[at])
    return min(doubts)


def _beginning(text: str, form: str) -> int | None:
    """Where the longest end of the text begins that is a beginning of the form."""
    at = text.find(form[0], max(0, len(text) - len(form) + 1))
    while at >= 0:
        if form.startswith(text[at:]):
            return at
        at = text.find(form[0], at + 1)
    return None


def _open_pem(view: View) -> int | None:
    """A key that has begun and whose end may still come."""
    text = view.text
    ends = [match.end() for match in needles.END_PEM.finditer(text, max(0, len(text) - 2 * needles.PEM_BODY))]
    begun = needles.OPEN_PEM.search(text, max([len(text) - needles.PEM_BODY - 200, 0, *ends]))
    return begun.start() if begun else None
