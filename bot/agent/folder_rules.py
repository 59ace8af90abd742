"""Rules of single folders: which files they have, what these import, and the words that an agent gets. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from bot.agent.material import AGENTS, CLAUDE, CUT, MAX_BYTES, beginning, rule_names, size
from bot.text.markup import BlockMeaning, InlineMark, blocks, pieces
from bot.text.visible import as_written

MOST_DEPTH = 5
"""Imports below imports, as in Claude Code."""
MOST_IMPORTS = 30
"""The most for one file with rules."""
MOST_WRITTEN = 200
"""The most words of one file that we take for imports."""
MOST_NAMED = 3
MOST_LINKS = 5
_IMPORT = re.compile(r"(?<!\S)@((?:[^\s\\]|\\ ){1,500}+)")
_ENDS_SENTENCE = ".,;:!?)]}'\"*_"


@dataclass(frozen=True)
class RuleFile:
    """A file that rules are made of, with the paths that it imports."""

    path: str
    text: str
    """What a reader of its page sees, up to a limit."""
    imports: tuple[tuple[str, ...], ...] = ()
    """For each import the paths that it may mean: a dot behind a path may end the sentence."""
    outside: tuple[str, ...] = ()
    """Imports that lead out of the repository, which nobody follows; none of those that lead to a person's home."""


def read(path: str, raw: bytes) -> RuleFile:
    text = as_written(raw[: 4 * MAX_BYTES].decode("utf-8", "replace")).text.strip()
    text = beginning(text, MAX_BYTES) if size(text) > MAX_BYTES else text
    inside, outside = list[tuple[str, ...]](), list[str]()
    for one in islice(dict.fromkeys(_imports(text)), MOST_WRITTEN):
        forms = dict.fromkeys((one, one.rstrip(_ENDS_SENTENCE)))
        if paths := tuple(to for form in forms if form and (to := target(path, form)) is not None):
            inside.append(paths)
        elif not one.startswith("~"):  # each person's own
            outside.append(one)
    return RuleFile(path, text, tuple(inside), tuple(outside))


def _imports(text: str) -> Iterator[str]:
    """Find `@path` in prose: no code block, span of code, tag or comment counts."""
    if "@" not in text:
        return
    for block in blocks(text):
        for piece in pieces(text, block) if block.kind is BlockMeaning.TEXT else ():
            if piece.mark is InlineMark.TEXT:
                for match in _IMPORT.finditer(text, piece.start, piece.end):
                    yield match[1].replace("\\ ", " ").partition("#")[0]


def target(importer: str, written: str) -> str | None:
    """Follow a relative path, or a link, from the file that holds it; None if it leaves the repository."""
    if written.startswith(("/", "~")) or "\\" in written or not written.isprintable():
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(importer), written))
    parts = path.split("/")
    return None if path == "." or parts[0] == ".." or ".git" in parts else path


def head_of(folder: str, paths: Iterable[str]) -> str | None:
    """Return the file of a folder whose rules count: `CLAUDE.md`, or else `AGENTS.md`."""
    return next((path for name in (CLAUDE, AGENTS) if (path := posixpath.join(folder, name)) in paths), None)


def folder_of(path: str) -> str:
    return posixpath.dirname(path)


def above(folder: str) -> list[str]:
    """List the folder and those around it, the outermost first, without the root."""
    parts = folder.split("/")
    return ["/".join(parts[: at + 1]) for at in range(len(parts))] if folder else []


def expanded(head: str, files: Mapping[str, RuleFile]) -> tuple[list[tuple[str, RuleFile]], list[str]]:
    """Return the file and all that it imports, each once, with the path of its importer; and what was left out."""
    found: dict[str, tuple[str, RuleFile]] = {}
    notes: dict[str, None] = {}
    waiting = [(head, "", 0)]
    while waiting:
        path, importer, depth = waiting.pop()
        one = files.get(path)
        if one is None or one.path in found:
            continue
        if depth > MOST_DEPTH or len(found) > MOST_IMPORTS:
            beyond = f"more than {MOST_DEPTH} deep" if depth > MOST_DEPTH else f"beyond the first {MOST_IMPORTS}"
            notes[f"what {rule_names(head)} imports {beyond}"] = None
            continue
        found[one.path] = (importer, one)
        for out in one.outside[:MOST_NAMED]:
            notes[f"{rule_names(out)}, which {rule_names(one.path)} imports: it is outside the repository"] = None
        known = (next((path for path in paths if path in files), None) for paths in reversed(one.imports))
        waiting += [(path, one.path, depth + 1) for path in known if path is not None]
    return list(found.values()), list(notes)


def title(importer: str, one: RuleFile) -> str:
    return rule_names(one.path) + (f", which {rule_names(importer)} imports," if importer else "")


def words(found: Sequence[tuple[str, RuleFile]], branch: str, most: int) -> str:
    """Write the rules of a folder for an agent that comes to it."""
    parts, room = [], most
    for importer, one in found:
        head = f"# {title(importer, one)} of the branch {rule_names(branch)}\n\n"
        left = room - size(head)
        if left <= size(CUT) + 1:
            break
        text = one.text if size(one.text) <= left else beginning(one.text, left)
        parts.append(head + text)
        room -= size(parts[-1]) + 2
    return "\n\n".join(parts)
