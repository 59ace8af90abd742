"""Makes text harmless on GitHub without changing how it reads: what others wrote, and the whole that leaves."""

from __future__ import annotations

import re
from collections.abc import Callable

from bot.outbound import prose, scrub
from bot.text import lines as characters
from bot.text.scanner import BlockForm, Leaf
from bot.words import quoting

MARKER = re.compile(r"<!-- forgehand:[A-Za-z0-9_=. :#/-]{0,300} -->[ \t]*\Z")
_FORGED = re.compile(r"<!--(?=\s*forgehand:)", re.IGNORECASE)
_BOTS = r"bors|homu|dependabot|renovate|mergify|jenkins|prow|azp|netlify|codecov|gemini|copilot"
_WORDS = rf"(?:(?:{_BOTS})\b|r[?+]|recheck\b|retest\b|test this\b|ok to test\b)"
_SLASH = r"/(?=[A-Za-z][\w-]*(?:[ \t]|$))"
_COMMAND = re.compile(rf"^([ \t]*)({_SLASH}|(?={_WORDS}))", re.IGNORECASE)
_COMMAND_IN_CODE = re.compile(rf"(?m)^(?={_SLASH}|{_WORDS})", re.IGNORECASE)
_ANY_COMMAND = re.compile(rf"(?m)^[ \t]*(?:{_SLASH}|{_WORDS})", re.IGNORECASE)
_RICH = ("mermaid", "geojson", "topojson", "stl", "math")
_INFO = re.compile(r"[A-Za-z0-9_+#.-]{1,30}\Z")
_OPENING = re.compile(r"((?:[ \t>*+.)\d-]|\[\^[^\]\s]++\]:)*+)(`{3,}|~{3,})[^\n]*\Z")
_FENCES_AND_QUOTES = re.compile(r"`{3,}|~{3,}|^(?:[ \t]*+[/>])++", re.MULTILINE)
_BEFORE = "x "
Change = Callable[[str], str]


def inert(text: str) -> str:
    """Markdown that others wrote, to stand in a page of ours: it keeps its form and loses its effects."""
    return _markdown(characters.shown(text), scrub.untrusted, scrub.any_html)


def quoted(text: str) -> str:
    """The same set apart as a quotation, and judged as it stands there."""
    return _markdown(_set_apart(characters.shown(text)), scrub.untrusted, scrub.any_html, _set_apart)


def line(text: str) -> str:
    """Words of others within a line of ours, where they open no block, and no code that words after them would end."""
    words = " ".join(characters.shown(text).split())
    made = _markdown(_BEFORE + words, scrub.untrusted, scrub.any_html).removeprefix(_BEFORE)
    return prose.outside_spans(made, _without_ticks) if "`" in made else made


def block(text: str, language: str = "") -> str:
    """Text as a code block that it cannot leave."""
    body = _COMMAND_IN_CODE.sub(" ", _forged(characters.shown(text)))
    return quoting.code(body, language if _is_plain(language) else "")


def whole(text: str, closes: int | None = None) -> str:
    """A composed body. Our marker may stand on its first line alone; `closes` is the one thread it may close."""
    text = characters.shown(text)
    first, separator, rest = text.partition("\n")
    marked = MARKER.match(first) is not None
    changed = _markdown(rest if marked else text, lambda part: scrub.scrub_whole(part, closes), scrub.foreign_html)
    return first.rstrip() + separator + changed if marked else changed


def whole_plain(text: str, closes: int | None = None) -> str:
    return scrub.scrub_plain_whole(_forged(characters.shown(text)), closes)


def _markdown(text: str, change: Change, escape: Change, apart: Change = str) -> str:
    """Change the prose and leave code as it is; where that cannot be done surely, change everything."""
    try:
        changed = _outside_code(text, change, escape)
        leaves = prose.blocks(changed)
        if prose.closing(leaves) or any(change(part) != part for part in prose.live_texts(changed, leaves)):
            changed = _closed(change(text))
        return _forged(_without_commands(changed))
    except prose.TooDeep:
        return _forged(apart(_as_words(text, change)))


def _without_ticks(text: str) -> str:
    return text.replace("`", "&#96;")


def _set_apart(text: str) -> str:
    return "\n".join(f"> {one}".rstrip() for one in text.split("\n"))


def _as_words(text: str, change: Change) -> str:
    """Without any code or quotation in it."""
    lines = change(_FENCES_AND_QUOTES.sub(" ", text)).split("\n")
    return "\n".join(_COMMAND.sub(_defused, line) for line in lines)


def _forged(text: str) -> str:
    """Our marker where it is not ours: in prose it is escaped already, in code a space makes it another word."""
    return _FORGED.sub("<! --", text)


def _outside_code(text: str, change: Change, escape: Change) -> str:
    # The scanner is shown HTML as it will be: what will be shown as text must not open a block.
    if "\t" in text:
        text = prose.without_tabs(text, prose.blocks(escape(text)))
    leaves = prose.blocks(escape(text))
    lines = text.split("\n")
    out: list[str] = []
    at = 0
    for leaf in leaves:
        out += (change(line) for line in lines[at : leaf.first])
        out += _block(leaf, lines[leaf.first : leaf.last], change)
        at = leaf.last
    if (end := prose.closing(leaves)) is not None:
        out.append(end)
    out += (change(line) for line in lines[at:])
    return "\n".join(out)


def _block(leaf: Leaf, inside: list[str], change: Change) -> list[str]:
    if leaf.form is BlockForm.FENCE:
        return [_opening(leaf, inside[0], change), *inside[1:]]
    if leaf.form is BlockForm.CODE:
        return inside if leaf.within is not None else _fenced(inside)
    words = "\n".join(inside)
    if leaf.form in (BlockForm.HTML, BlockForm.DEFINITION):
        return change(words).split("\n")
    outside = prose.outside_spans_of_cells if leaf.form is BlockForm.ROW else prose.outside_spans
    return outside(words, change).split("\n")


def _fenced(inside: list[str]) -> list[str]:
    """Below a list, what is code by its indentation alone would be words of its last item."""
    return block("\n".join(one[4:] for one in inside)).split("\n")


def _opening(leaf: Leaf, line: str, change: Change) -> str:
    """A fence's first line: its info string without what is hidden in it or makes GitHub draw."""
    opening = _OPENING.match(line)
    if opening is None:
        return change(line)
    language = (leaf.info.split() or [""])[0]
    return change(opening[1]) + opening[2] + (language if _is_plain(language) else "")


def _is_plain(language: str) -> bool:
    return bool(_INFO.match(language)) and language.lower() not in _RICH


def _closed(text: str) -> str:
    end = prose.closing(prose.blocks(text))
    return text if end is None else f"{text}\n{end}"


def _without_commands(text: str) -> str:
    """Other bots read the raw lines, also those in code, where a space must do."""
    if not _ANY_COMMAND.search(text):
        return text
    fences = (leaf for leaf in prose.blocks(text) if leaf.form is BlockForm.FENCE)
    code = {at for leaf in fences for at in range(leaf.first + 1, leaf.last)}
    return "\n".join(
        _COMMAND_IN_CODE.sub(" ", line) if at in code else _COMMAND.sub(_defused, line)
        for at, line in enumerate(text.split("\n"))
    )


def _defused(match: re.Match[str]) -> str:
    return match[1] + ("&#47;" if match[2] else "&nbsp;")
