"""How words and names of others stand in a sentence of ours: as code that they cannot leave."""

from __future__ import annotations

import re
from collections.abc import Sequence

_UNSEEN = re.compile(r"[^\n!-~]+")
"""More than is ever taken out: what matters is that no run of backticks becomes longer than it was counted."""


def shown(text: str, limit: int = 40) -> str:
    """Words of others as inline code that they cannot leave."""
    clean = "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in " ".join(text.split()))
    return f"`{clean[:limit] or '?'}{'…' if len(clean) > limit else ''}`"


def fenced(text: str) -> str:
    """What a program has printed."""
    return code(text.strip(), "text")


def code(text: str, language: str) -> str:
    """A code block that its own content cannot close, not even once characters that nobody sees are taken out of it."""
    body = text.replace("\r\n", "\n").removesuffix("\n")
    fence = "`" * max(3, max(map(len, re.findall("`+", _UNSEEN.sub("", body))), default=0) + 1)
    return f"{fence}{language}\n{body}\n{fence}" if body else f"{fence}{language}\n{fence}"


def named(names: Sequence[str], most: int, longest: int = 200) -> str:
    """So many of them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown(name, longest) for name in names[:most]) + more


def person(login: str) -> str:
    """In code, so that nobody is notified."""
    return shown(login, 60)
