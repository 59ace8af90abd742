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
    begin: str = ""

    def text(self, size: int) -> str:
        size -= len(self.begin) + len(self.end)
        if self.in_turn:
            return self.begin + _filled("".join(self.parts), size) + self.end
        share = size // len(self.parts)
        return self.begin + "".join(_filled(part, share) for part in self.parts) + self.end

    def __str__(self) -> str:
        shown = " ".join(repr(part) for part in self.parts)
        end = f", then {self.end!r}" if self.end else ""
        begin = f"{self.begin!r}, then " if self.begin else ""
        return f"{begin}{shown}{'' if self.in_turn or len(self.parts) == 1 else ', one after the other'}{end}"


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


AROUND = (
    ("a <a", ">"),
    ("<a b='", "'>"),
    ("<div a=b /c='", "'>\n"),
    ("`", "`"),
    ("[a](", ")"),
    ("![", "](b)"),
    ("$", "$"),
)
"""What opens before much of something, and closes behind it."""


def closed() -> Iterator[Recipe]:
    """What is reread, if anything is, because it does end."""
    for unit in UNITS:
        for begin, end in AROUND:
            yield Recipe((unit,), in_turn=True, begin=begin, end=end)


def sample(many: int, seed: int = 1) -> list[Recipe]:
    """All single ones, and so many of the pairs, and some of those that are closed."""
    chance = random.Random(seed)
    return [*singles(), *chance.sample(list(pairs()), many), *chance.sample(list(closed()), many // 4)]
