"""Reads what a repository's files say about how it is set up and checked. Pure: it runs nothing.

Everything that it reads is foreign: texts are cut, names must be plain, and only known tools become candidates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from bot.survey import node, python, readme, runners, table, workflows
from bot.survey.shape import Candidate, ProjectFolder

__all__ = ["LOOKED_FOR", "MOST_BYTES", "Candidate", "candidates", "wanted"]

MOST_BYTES = 48 << 10
"""Bytes of a file that is read; a longer one is left out."""
MOST_FILES = 60
MOST_FOLDERS = 4
MOST_WORKFLOWS = 4
MOST_FOR_A_GOAL = 4
MOST_CANDIDATES = 40
_ECOSYSTEMS = (python, node, table)
_NAMES = frozenset((*python.MANIFESTS, *node.MANIFESTS, *runners.MANIFESTS, *readme.NAMES))
_ROOTS = (*python.MANIFESTS[:3], "requirements.txt", *node.MANIFESTS, *table.MANIFESTS)
"""Files that make a folder a separate project."""
_PLAIN_FOLDER = re.compile(r"[A-Za-z0-9_][\w.-]{0,60}")
_NOT_PROJECTS = {"docs", "doc", "examples", "example", "node_modules", "vendor", "tests", "test", "third_party"}
LOOKED_FOR = (
    *("pyproject.toml", "setup.cfg", "requirements.txt", "tox.ini", "noxfile.py", "package.json", "Makefile"),
    *("justfile", "Cargo.toml", "go.mod", "pom.xml", "build.gradle", "Gemfile", "composer.json", "*.csproj", "mix.exs"),
    *("the `run` steps of .github/workflows", "the code blocks of README.md"),
)


def wanted(paths: Iterable[str]) -> list[str]:
    """Choose the files to read, those at the root first."""
    paths = list(paths)
    found = [path for path in paths if path in _NAMES]
    found += sorted(path for path in paths if path.startswith(workflows.FOLDER) and path.endswith((".yml", ".yaml")))[
        :MOST_WORKFLOWS
    ]
    for folder in _folders(paths):
        below = {f"{folder}/{name}" for name in _NAMES}
        found += [path for path in paths if path in below]
    return found[:MOST_FILES]


def candidates(paths: Iterable[str], texts: Mapping[str, str]) -> list[Candidate]:
    """Order the candidates as they are to be tried: setup first, and for each goal what CI runs, then what files
    declare, then our guesses, then README."""
    known = frozenset(paths)
    root = ProjectFolder("", known, texts)
    targets = runners.targets(root)
    declared = [root, *(_inside(one, known, texts) for one in _folders(known))]
    installed, guessed = list[Candidate](), list[Candidate]()
    for folder in declared:
        for one in (one for ecosystem in _ECOSYSTEMS for one in ecosystem.candidates(folder)):
            (installed if one.setup else guessed).append(one.in_folder(folder.name))
    found = [*installed]
    for path in sorted(path for path in texts if path.startswith(workflows.FOLDER)):
        found += workflows.candidates(path, texts[path], targets)
    found += [one.in_folder(folder.name) for folder in declared for one in runners.candidates(folder)]
    found += guessed
    for path in (name for name in readme.NAMES if name in texts):
        found += readme.candidates(path, texts[path], targets)
    return list(_chosen(found))


def _chosen(found: Iterable[Candidate]) -> Iterator[Candidate]:
    """Drop repetitions and all that is too much, and give each what its ecosystem needs."""
    found, seen, of_goal = list(found), set[str](), Counter[str]()
    needy = {one.ecosystem: one for one in reversed(found) if not one.alone}
    hosts = {one.ecosystem: one.hosts for one in reversed(found) if one.hosts}
    for one in found:
        if one.line() in seen or of_goal[one.goal] >= MOST_FOR_A_GOAL or len(seen) >= MOST_CANDIDATES:
            continue
        seen.add(one.line())
        of_goal[one.goal] += 1
        yield replace(
            one, alone=one.setup or one.ecosystem not in needy, hosts=one.hosts or hosts.get(one.ecosystem, ())
        )


def _folders(paths: Iterable[str]) -> list[str]:
    """Find projects right below the root, unless the root is one of the same kind."""
    split = [path.split("/") for path in paths if path.count("/") <= 1]
    at_root = {parts[0] for parts in split if len(parts) == 1}
    found: dict[str, set[str]] = {}
    for folder, name in (parts for parts in split if len(parts) == 2):
        kind = next((one for one in _ROOTS if fnmatchcase(name, one)), None)
        is_one = kind and _PLAIN_FOLDER.fullmatch(folder) and folder.lower() not in _NOT_PROJECTS
        if kind and is_one and not any(fnmatchcase(one, kind) for one in at_root):
            found.setdefault(folder, set()).add(kind)
    return sorted(found)[:MOST_FOLDERS]


def _inside(folder: str, paths: Iterable[str], texts: Mapping[str, str]) -> ProjectFolder:
    start = f"{folder}/"
    return ProjectFolder(
        folder,
        frozenset(path.removeprefix(start) for path in paths if path.startswith(start)),
        {path.removeprefix(start): text for path, text in texts.items() if path.startswith(start)},
    )
