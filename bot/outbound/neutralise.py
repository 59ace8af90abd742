"""Makes text harmless on GitHub without changing how it reads: what others wrote, and the whole that leaves."""

from __future__ import annotations

import re
from collections.abc import Callable

from bot.outbound import prose, scrub
from bot.text import characters

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
_OPENING = re.compile(r"([ \t>*+.)\d-]*)(`{3,}|~{3,})[^\n]*\Z")
_TRAILER = re.compile(r"(?m)^(?=[A-Za-z][A-Za-z0-9-]*(?:-by|-id|-checks|-link)?:[ \t])", re.IGNORECASE)
Change = Callable[[str], str]


def inert(text: str) -> str:
    """Markdown that others wrote, to stand in a page of ours: it keeps its form and loses its effects."""
    return _markdown(characters.shown(text), scrub.untrusted, scrub.any_html)


def block(text: str, language: str = "") -> str:
    """Text as a code block that it cannot leave."""
    shown = _forged(characters.shown(text))
    longest = max((len(run) for run in re.findall(r"`{3,}", shown)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language if _is_plain(language) else ''}\n{_COMMAND_IN_CODE.sub(' ', shown)}\n{fence}"


def plain(text: str) -> str:
    """Words of others for a title or a commit message: no references, and no line that reads as a trailer."""
    return _TRAILER.sub("- ", scrub.plain(_forged(characters.shown(text))))


def whole(text: str, closes: int | None = None) -> str:
    """A composed body. Our marker may stand on its first line alone; `closes` is the one thread it may close."""
    text = characters.shown(text)
    first, separator, rest = text.partition("\n")
    marked = MARKER.match(first) is not None
    changed = _markdown(rest if marked else text, lambda part: scrub.whole(part, closes), scrub.foreign_html)
    return first.rstrip() + separator + changed if marked else changed


def whole_plain(text: str, closes: int | None = None) -> str:
    return scrub.plain_whole(_forged(characters.shown(text)), closes)


def _markdown(text: str, change: Change, escape: Change) -> str:
    """Change the prose and leave code as it is; where that cannot be done surely, change everything."""
    try:
        changed = _outside_code(text, change, escape)
        if any(change(part) != part for part in prose.live_texts(changed)):
            changed = _closed(change(text))
        return _forged(_without_commands(changed))
    except prose.TooDeep:
        return _forged(change(re.sub(r"`{3,}|~{3,}|^[ \t]*[/>]", "", text, flags=re.MULTILINE)))


def _forged(text: str) -> str:
    """Our marker where it is not ours: in prose it is escaped already, in code a space makes it another word."""
    return _FORGED.sub("<! --", text)


def _outside_code(text: str, change: Change, escape: Change) -> str:
    # The parser is shown HTML as it will be: what will be shown as text must not open a block.
    lines = text.split("\n")
    out: list[str] = []
    at = 0
    for part in prose.blocks(escape(text)):
        out += (change(line) for line in lines[at : part.start])
        out += _block(part, lines, change)
        at = part.end
    out += (change(line) for line in lines[at:])
    return "\n".join(out)


def _block(part: prose.Block, lines: list[str], change: Change) -> list[str]:
    inside = lines[part.start : part.end]
    if part.kind == "fence":
        return _fence(part, lines)
    if part.kind == "code":
        return inside
    if part.kind == "html":
        return change("\n".join(inside)).split("\n")
    outside = prose.outside_spans_of_cells if part.kind == "row" else prose.outside_spans
    return outside("\n".join(inside), change).split("\n")


def _fence(part: prose.Block, lines: list[str]) -> list[str]:
    """Its content as it is; its info string without what is hidden in it or makes GitHub draw; closed in any case."""
    inside = lines[part.start : part.end]
    opening = _OPENING.match(inside[0])
    if opening:
        language = (part.info.split() or [""])[0]
        inside[0] = opening[1] + opening[2] + (language if _is_plain(language) else "")
    if part.end == len(lines) and not prose.is_closed(part, lines):
        inside.append(re.sub(r"[^ \t>]", " ", opening[1] if opening else "") + part.markup)
    return inside


def _is_plain(language: str) -> bool:
    return bool(_INFO.match(language)) and language.lower() not in _RICH


def _closed(text: str) -> str:
    lines = text.split("\n")
    last = prose.blocks(text)[-1:]
    if last and last[0].kind == "fence" and last[0].end == len(lines) and not prose.is_closed(last[0], lines):
        return f"{text}\n{last[0].markup}"
    return text


def _without_commands(text: str) -> str:
    """Other bots read the raw lines, also those in code, where a space must do."""
    if not _ANY_COMMAND.search(text):
        return text
    code = {at for part in prose.blocks(text) if part.kind == "fence" for at in range(part.start + 1, part.end)}
    return "\n".join(
        _COMMAND_IN_CODE.sub(" ", line) if at in code else _COMMAND.sub(_defused, line)
        for at, line in enumerate(text.split("\n"))
    )


def _defused(match: re.Match[str]) -> str:
    return match[1] + ("&#47;" if match[2] else "&nbsp;")
