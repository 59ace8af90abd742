"""What hostile texts are made of: openers, closers and lines, alone, in pairs and in triples."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

UNITS = (
    *(
        "/claude \n",
        "a\n",
        "\n",
        " ",
        "\t",
        "    ",
        "> ",
        ">#\na\n",
        "> ```\nfix \n",
        "- ",
        "1. ",
        "  - x\n",
        "# a ",
        "```",
    ),
    *(
        "~~~\n",
        "`",
        "` ``",
        "\\`",
        "---\n",
        "\tcode\n",
        "|a",
        "a|b\n",
        "-|-\n",
        "[",
        "![",
        "[a](",
        "](",
        '[a]: b "',
        "[^1]: a\n",
    ),
    *(
        "(",
        "<a",
        '<a b="',
        "<!--",
        "<?",
        "<div>\n",
        "</div>",
        "<details>\n",
        "**",
        "***a",
        "~~",
        "_",
        "$",
        "$`",
        "&#x",
        "&amp;",
    ),
    *(
        "@a",
        "#1",
        "fix ",
        "fix:https://",
        "/merge\n",
        "- [x] a",
        "\r",
        "\x1b[",
        "\x1b]",
        "\u200b",
        "漢",
        "x",
        "a-a",
        "eyJa",
        "://a:",
    ),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "%41",
        "\\u0041",
        "On 1\n",
        "--model ",
        "diff --git a/x b/x\n",
        "@@ -9,9 +9,9 @@\n",
    ),
    *("+a\n", "-a\n", "a: ", "{a: ", '"', '{"a":', "D1: a\n"),
)
Text = Callable[[int], str]
"""So many characters of it."""


@dataclass(frozen=True)
class Recipe:
    """How a text of any length is made."""

    parts: tuple[str, ...]
    in_turn: bool
    """All of them again and again; else first much of one, then much of the next."""
    end: str = ""

    def text(self, size: int) -> str:
        size -= len(self.end)
        if self.in_turn:
            return _filled("".join(self.parts), size) + self.end
        share = size // len(self.parts)
        return "".join(_filled(part, share) for part in self.parts) + self.end

    def __str__(self) -> str:
        shown = " ".join(repr(part) for part in self.parts)
        end = f", then {self.end!r}" if self.end else ""
        return f"{shown}{'' if self.in_turn or len(self.parts) == 1 else ', one after the other'}{end}"


def _filled(part: str, size: int) -> str:
    return (part * (size // len(part) + 1))[:size]


def singles() -> Iterator[Recipe]:
    for unit in UNITS:
        yield Recipe((unit,), in_turn=True)
        yield Recipe((unit,), in_turn=True, end="!")


def pairs() -> Iterator[Recipe]:
    for at, (one, other) in enumerate(product(UNITS, UNITS)):
        if one != other:
            yield Recipe((one, other), in_turn=True)
            if at % 3 == 0:
                yield Recipe((one, other), in_turn=False)


def triples(many: int, seed: int = 1) -> Iterator[Recipe]:
    """Some of the million that there are, always the same ones."""
    chance = random.Random(seed)
    for _ in range(many):
        parts = tuple(chance.choice(UNITS) for _ in range(3))
        yield Recipe(parts, in_turn=chance.random() < 0.6, end=chance.choice(("", "", "!", "\n/claude fix", "\n```")))


def sample(many: int, seed: int = 1) -> list[Recipe]:
    """All single ones, and so many of the pairs."""
    return [*singles(), *random.Random(seed).sample(list(pairs()), many)]
