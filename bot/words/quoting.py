"""Put the words and names of others into a sentence of ours: as code that they cannot leave."""

from __future__ import annotations

import re
from collections.abc import Sequence

_UNSEEN = re.compile(r"[^\n!-~]+")
"""Covers more than is ever taken out, so that no run of backticks becomes longer than it was counted."""


def shown(text: str, limit: int = 40) -> str:
    """Show words of others as inline code that they cannot leave."""
    clean = "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in " ".join(text.split()))
    return f"`{clean[:limit] or '?'}{'…' if len(clean) > limit else ''}`"


def fenced(text: str) -> str:
    return code(text.strip(), "text")


def code(text: str, language: str) -> str:
    """Make a code block that its content cannot close, even after invisible characters are taken out of it."""
    body = text.replace("\r\n", "\n").removesuffix("\n")
    fence = "`" * max(3, max(map(len, re.findall("`+", _UNSEEN.sub("", body))), default=0) + 1)
    return f"{fence}{language}\n{body}\n{fence}" if body else f"{fence}{language}\n{fence}"


def named(names: Sequence[str], most: int, longest: int = 200) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown(name, longest) for name in names[:most]) + more


def person(login: str) -> str:
    """Name a person as code, so that GitHub notifies nobody."""
    return shown(login, 60)
