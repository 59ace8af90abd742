"""Makes a plugin of the files of a repository's `.claude`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from bot.knowhow import AGENTS, COMMANDS, SKILLS, KnowHow, KnowHowFile, NamedCommand, frontmatter
from bot.knowhow.frontmatter import OF_AGENTS, TAKEN

MANIFEST = ".claude-plugin/plugin.json"
MOST_NAMED = 5
_PART = re.compile(r"(?!\.)[\w@+ .,()-]{1,100}\Z")
_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,63}\Z")


class Packing:
    """One plugin, file by file."""

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin
        self._files: dict[str, bytes] = {}
        self._executable: set[str] = set()
        self._commands: list[NamedCommand] = []
        self._keys: Counter[str] = Counter()
        self._unfit: list[str] = []

    def add(self, file: KnowHowFile, skills: frozenset[str]) -> None:
        path = file.path.removeprefix(".claude/")
        parts = path.split("/")
        if not all(map(_PART.match, parts)):
            self._unfit.append(file.path)
        elif file.path.startswith(SKILLS):
            self._add_skill(file, parts, skills)
        elif not path.lower().endswith(".md"):
            self._unfit.append(file.path)
        elif file.path.startswith(AGENTS):
            self._add_agent(file, parts)
        else:
            self._add_command(file, parts)

    def made(self, left_out: Sequence[str]) -> KnowHow:
        said = list(left_out)
        if self._keys:
            keys = [f"`{key}`" for key in sorted(self._keys)]
            said.append(f"{_listed(keys)} in files of `.claude`, which Forgehand does not use")
        if self._unfit:
            said.append(f"{_listed(self._unfit)}: no part of a skill, an agent or a command")
        if self._files:
            about = {"name": self._plugin, "version": "1", "description": f"Know-how of the {self._plugin}"}
            self._files[MANIFEST] = json.dumps(about).encode()
        plainly = ("".join(one if one.isprintable() else "?" for one in sentence)[:500] for sentence in said)
        return KnowHow(self._plugin, self._files, frozenset(self._executable), tuple(self._commands), tuple(plainly))

    def _add_skill(self, file: KnowHowFile, parts: list[str], skills: frozenset[str]) -> None:
        """Keep a skill's files beside it as they are, but for files of the same name, which are its own kind."""
        folder, path = parts[1], "/".join(parts)
        if folder not in skills or not _NAME.match(folder):
            self._unfit.append(file.path)
        elif parts[-1].upper() != "SKILL.MD":
            self._put(path, file.data, executable=file.executable)
        elif len(parts) == 3:
            found = self._read(file, TAKEN)
            self._put(path, found.written(TAKEN, name=folder))
            body = found.body if found.is_on("disable-model-invocation") else None
            self._commands.append(NamedCommand(folder, found.what, self._plugin, body))
        else:
            self._put(path, self._read(file, ()).written(()))

    def _add_agent(self, file: KnowHowFile, parts: list[str]) -> None:
        found = self._read(file, OF_AGENTS)
        said, stem = found.values.get("name"), parts[-1][: -len(".md")]
        name = said if isinstance(said, str) and _NAME.match(said) else stem
        if _NAME.match(name):
            self._put("/".join(parts), found.written(OF_AGENTS, name=name))
        else:
            self._unfit.append(file.path)

    def _add_command(self, file: KnowHowFile, parts: list[str]) -> None:
        names = [*parts[1:-1], parts[-1][: -len(".md")]]
        if not all(map(_NAME.match, names)):
            self._unfit.append(file.path)
            return
        found = self._read(file, TAKEN)
        self._put("/".join(parts), found.written(TAKEN))
        self._commands.append(NamedCommand(":".join(names), found.what, self._plugin, found.body))

    def _read(self, file: KnowHowFile, known: Sequence[str]) -> frontmatter.Document:
        found = frontmatter.read(file.data)
        self._keys.update(found.others(known))
        return found

    def _put(self, path: str, data: bytes, *, executable: bool = False) -> None:
        self._files[path] = data
        if executable:
            self._executable.add(path)


def pack(plugin: str, files: Iterable[KnowHowFile], left_out: Sequence[str] = ()) -> KnowHow:
    """`left_out`: sentences about what was not even read."""
    found, packing = list(files), Packing(plugin)
    skills = frozenset(
        one.path.split("/")[2]
        for one in found
        if one.path.startswith(SKILLS) and one.path.count("/") == 3 and one.path.upper().endswith("/SKILL.MD")
    )
    for file in found:
        packing.add(file, skills)
    return packing.made(left_out)


def is_text_to_read(path: str) -> bool:
    """Tell whether a file says itself what it is; the others lie beside such a file."""
    return path.startswith((AGENTS, COMMANDS)) or path.upper().endswith("/SKILL.MD")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")
