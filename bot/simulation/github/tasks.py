"""The checkboxes of a markdown body: what a click on one makes of its text."""

from __future__ import annotations

import re

from bot.simulation.github import rendering

_TASK = re.compile(r"\[[ xX]\] ")
_SIGN = re.compile(r"\[([ xX])\]")


def lines(body: str) -> list[int]:
    """The line of each box, in order; what looks like one in code is none."""
    if rendering.is_flood(body):
        return []
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(body)
    return [token.map[0] for token in tokens if token.type == "inline" and token.map and _TASK.match(token.content)]


def ticked(body: str, at: int | str) -> str:
    """The box at a place (from 0), or the first with words beside it, turned over; the rest of the text as it is."""
    text = body.split("\n")
    found = lines(body)
    line = found[at] if isinstance(at, int) else next((one for one in found if at in text[one]), None)
    if line is None:
        raise LookupError(f"no box {at!r}")
    text[line] = _SIGN.sub(lambda match: "[ ]" if match[1] != " " else "[x]", text[line], count=1)
    return "\n".join(text)
