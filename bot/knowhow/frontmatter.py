"""Reads the head of a skill, an agent or a command, and writes one that has only keys that we know to be harmless."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from bot.errors import BadRepoConfig
from bot.repo_config.yaml import read_entries
from bot.text.blocks import plain

MAX_HEAD = 8 << 10
MOST_NODES = 200
"""All heads of a repository are read before each turn, and YAML takes time for each value."""
MAX_TEXT = 1_000
"""The limit for a value: each request to the model repeats the descriptions."""
_FENCE = re.compile(r"---[ \t]*\r?\n")
_END = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_LINE = re.compile(r"^([A-Za-z][\w-]{0,60}):[ \t]+(\S[^\r\n]*)", re.MULTILINE)
_INLINE, _FENCED = re.compile(r"(?<!!)!++(?=`)"), re.compile(r"(?<=```)!++")
_SPACES = re.compile(r"\s+")

ABOUT = ("description", "when_to_use")
TAKEN = (*ABOUT, "argument-hint", "arguments", "disable-model-invocation", "user-invocable")
OF_AGENTS = (*ABOUT, "tools", "disallowedTools", "color")
HARMLESS = frozenset(("author", "color", "compatibility", "keywords", "license", "metadata", "name", "version"))
"""Nobody misses these."""


@dataclass(frozen=True)
class Document:
    """A text with the values of its head."""

    values: Mapping[str, Any]
    body: str

    @property
    def what(self) -> str:
        """Say in a line what it is for."""
        said = self.values.get("description")
        lines = (line.strip("#*_ \t") for line in self.body.splitlines())
        return text(said) if isinstance(said, str) and said.strip() else text(next(filter(None, lines), ""))

    def is_on(self, key: str) -> bool:
        return self.values.get(key) in (True, "true")

    def others(self, known: Collection[str]) -> list[str]:
        """Return the keys that are left out and that somebody may miss."""
        found = (key for key in self.values if key not in known and key not in HARMLESS)
        return [key for key in found if (key, self.values[key]) != ("model", "inherit")]

    def written(self, known: Collection[str], **ours: str) -> bytes:
        """Write it with known keys only. JSON is YAML that no value can break out of."""
        values: dict[str, str | bool] = {}
        for key in (one for one in known if one in self.values):
            said = self.values[key]
            words = ", ".join(map(str, said)) if isinstance(said, list) else str(said)
            values[key] = said if isinstance(said, bool) else text(words)
        rows = [
            f"{key}: {json.dumps(value, ensure_ascii=False)}"
            for key, value in {**values, "description": self.what, **ours}.items()
        ]
        return "\n".join(["---", *rows, "---", self.body]).encode("utf-8", "replace")


def read(data: bytes) -> Document:
    """Leave out invisible characters, and the marks by which reading a text would run a command."""
    raw = data.decode("utf-8-sig", "replace").replace("\0", "\ufffd")
    head, body = "", raw
    if begin := _FENCE.match(raw):
        end = _END.search(raw, begin.end(), begin.end() + MAX_HEAD)
        if end is not None:
            head, body = raw[begin.end() : end.start()], raw[end.end() :]
    try:
        values = {entry.key: entry.value for entry in read_entries(head, MOST_NODES)}
    except BadRepoConfig:  # no proper YAML, or too much: read it line by line, as Claude Code does with the former
        values = {match[1]: match[2].strip().strip("'\"") for match in _LINE.finditer(head)}
    return Document(values, _FENCED.sub("", _INLINE.sub("", plain(body))))


def text(value: str) -> str:
    return plain(_SPACES.sub(" ", value)).strip()[:MAX_TEXT]
