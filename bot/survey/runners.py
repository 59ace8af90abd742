"""Makefiles and the like: targets that people run by name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.survey.shape import Candidate, ProjectFolder
from bot.survey.tools import TARGETS, commands_of, recognised

MANIFESTS = ("Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", "Taskfile.yml")
_TARGET = re.compile(r"^@?([A-Za-z][\w.-]{0,60})(?:[ \t][^\n:=]{0,200})?:(?!=)", re.MULTILINE)
_MOST_TARGETS = 300


def targets(folder: ProjectFolder) -> dict[str, tuple[str, str]]:
    """Map the commands that run a target to its goal and ecosystem, which its recipe tells."""
    found: dict[str, tuple[str, str]] = {}
    for file in MANIFESTS[:5]:
        program = "just" if "just" in file.lower() else "make"
        for name, recipe in _recipes(folder.text(file)):
            if TARGETS.fullmatch(name):
                lines = commands_of("\n".join(line.strip().lstrip("@-") for line in recipe.splitlines()))
                known = next(filter(None, map(recognised, lines)), None)
                found.setdefault(f"{program} {name}", known or (f"target {name}", ""))
    return found


def candidates(folder: ProjectFolder) -> Iterator[Candidate]:
    for command, (goal, ecosystem) in targets(folder).items():
        names = (
            one for one in MANIFESTS if one in folder.texts and ("just" in one.lower()) == command.startswith("just")
        )
        yield Candidate(command, goal, next(names, "Makefile"), ecosystem)


def _recipes(text: str) -> Iterator[tuple[str, str]]:
    """Yield each target with the indented lines below it."""
    found = list(_TARGET.finditer(text))[:_MOST_TARGETS]
    for at, match in enumerate(found):
        end = found[at + 1].start() if at + 1 < len(found) else len(text)
        below = text[match.end() : end].split("\n")[1:]
        yield match[1], "\n".join(line for line in below if line[:1] in ("\t", " "))
