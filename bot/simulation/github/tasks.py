"""The checkboxes of a markdown body: which are shown, and how a click on one changes the text.

It works as GitHub's published `task_list`. A box begins a line of a list item *as rendered*. A click changes the line
of the same number among those that look like a box *in the source*, code included. If the two differ, the click
changes the wrong line, here as there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bot.simulation.github import rendering

if TYPE_CHECKING:
    from markdown_it.token import Token

_SHOWN = re.compile(r"(?m)^[^\S\n]*\[[ xX]\](?=\s)")
_SOURCE = re.compile(r"\s*(?:(?:[-+*]|\d+\.)\s*|>\s*)*(\[[ xX]\])\s")
_FENCE = re.compile(r"```\w*\s*")


def shown(body: str) -> list[str]:
    """Return the line beside each rendered box, in order."""
    if rendering.is_flood(body):
        return []
    from markdown_it import MarkdownIt

    found, items = [], 0
    for token in MarkdownIt("commonmark").parse(body):
        items += (token.type == "list_item_open") - (token.type == "list_item_close")
        text = _text(token) if items else ""
        found += [text[match.end() :].partition("\n")[0].strip() for match in _SHOWN.finditer(text)]
    return found


def lines(body: str) -> list[int]:
    """Return the source lines that a click may change, in order."""
    found, fenced = [], False
    for at, line in enumerate(body.split("\n")):
        fenced = not fenced if _FENCE.fullmatch(line) else fenced
        if not fenced and _SOURCE.match(line):
            found.append(at)
    return found


def ticked(body: str, at: int | str) -> str:
    """Toggle the box at a place (from 0), or the first with these words beside it."""
    if isinstance(at, str):
        at = next((number for number, beside in enumerate(shown(body)) if at in beside), -1)
    text, found = body.split("\n"), lines(body)
    if not 0 <= at < len(found):
        raise LookupError(f"no box {at!r}")
    match = _SOURCE.match(text[found[at]])
    assert match is not None
    turned = "[ ]" if match[1] != "[ ]" else "[x]"
    text[found[at]] = text[found[at]][: match.start(1)] + turned + text[found[at]][match.end(1) :]
    return "\n".join(text)


def _text(token: Token) -> str:
    if token.type in ("fence", "code_block"):
        return token.content
    return "".join("\n" if "break" in one.type else one.content for one in token.children or ())
