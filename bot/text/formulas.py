"""Knows what GitHub draws otherwise than it is written, and so may hide: formulas, and footnotes that nothing names."""

from __future__ import annotations

import re

from bot.text.markdown import Kind, blocks

FORMULA = "[formula]"
_CODE_OR_FORMULA = re.compile(
    r"(?P<code>(?<![`$])`[^`\n]*+`(?!`))|\$\$[^$]*+\$\$|\$`[^`\n]*+`\$|\$(?!\s)[^$\n]*+(?<!\s)\$(?!\d)",
)
_HIDING = re.compile(
    r"""\\(?: (?: [hv]?phantom | m?smash | (?:text|page)?color | (?:math)?[clr]lap | raise | lower | move(?:left|right)
            | style | class | cssId | href | bbox | label | require | g?def | let | (?:re)?newcommand | mmlToken
        )(?![A-Za-z])
        | (?:h?skip|m?kern|mskip|hspace)\*?\s*\{?\s*- )
    | (?<!\\)%""",
    re.VERBOSE,
)
"""What takes room and draws nothing, changes the colour, or gives such a thing another name; and a comment."""
_NOTE = re.compile(r"(?m)^[ \t>*+-]{0,12}\[\^([^\]\s]{1,100})\]:[^\n]*+(?:\n(?![ \t>]{0,12}\[\^)[^\n]++)*+")
_REFERENCE = re.compile(r"\[\^([^\]\s]{1,100})\](?!:)")


def drawn(text: str) -> str:
    """The text without what a page would leave out of these; code stays as it is."""
    if "$" not in text and "[^" not in text:
        return text
    named = {label.lower() for label in _REFERENCE.findall(text)}
    return "".join(
        _drawn(text[block.start : block.end], named) if block.kind is Kind.TEXT else text[block.start : block.end]
        for block in blocks(text)
    )


def _drawn(raw: str, named: set[str]) -> str:
    noted = _NOTE.sub(lambda note: note.group() if note[1].lower() in named else "", raw)
    return _CODE_OR_FORMULA.sub(_seen, noted)


def _seen(match: re.Match[str]) -> str:
    return FORMULA if match["code"] is None and _HIDING.search(match.group()) else match.group()
