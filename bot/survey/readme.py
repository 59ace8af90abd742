"""A README's code blocks: the commands that it tells people to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bot.survey.shape import Candidate
from bot.survey.tools import commands_of, recognised
from bot.text import markup
from bot.text.markup import BlockMeaning

NAMES = ("README.md", "readme.md", "Readme.md", "CONTRIBUTING.md", ".github/CONTRIBUTING.md")
MOST = 10


def candidates(path: str, text: str, targets: Mapping[str, tuple[str, str]]) -> Iterator[Candidate]:
    left = MOST
    for block in markup.blocks(text):
        if block.kind is not BlockMeaning.CODE or block.quoted:
            continue
        lines = (line.strip().removeprefix("$ ") for line in text[block.start : block.end].splitlines())
        for command in commands_of("\n".join(lines)):
            if left and (known := recognised(command, targets)):
                left -= 1
                yield Candidate(command, known[0], path, known[1])
