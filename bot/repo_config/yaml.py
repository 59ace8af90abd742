"""Reads the YAML of a repository's config into keys with their lines, within caps; refuses anchors and tags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from bot.errors import BadRepoConfig

MAX_BYTES = 64 << 10
MAX_NODES = 10_000
MAX_DEPTH = 8
_NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{0,12})?")
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


@dataclass(frozen=True)
class YamlEntry:
    """One key of a mapping; it has `entries` if its value is a mapping too."""

    key: str
    line: int
    value: Any
    entries: list[YamlEntry] | None


def read_entries(text: str | bytes, most_nodes: int = MAX_NODES) -> list[YamlEntry]:
    """Return the entries of the top mapping; an empty file has none."""
    source = _decoded(text)
    try:
        _check_events(source, most_nodes)
        loader = yaml.SafeLoader(source)
        try:
            node = loader.get_single_node()
            if node is None or (isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"):
                return []
            if not isinstance(node, yaml.MappingNode):
                raise _bad(f"line {node.start_mark.line + 1}: the file must hold `key: value` lines")
            return list(_entries(loader, node))
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        problem = str(error.problem or error.context)[:120].translate(dict.fromkeys(map(ord, "`\r\n")))
        raise _bad(f"{where}this is not YAML ({problem})") from None
    except yaml.YAMLError:
        raise _bad("it holds characters that YAML does not allow") from None


def _bad(problem: str) -> BadRepoConfig:
    return BadRepoConfig(f"`.github/forgehand.yml` cannot be used as it is:\n\n- {problem}")


def _decoded(text: str | bytes) -> str:
    size = len(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise _bad(f"it is larger than {MAX_BYTES >> 10} KB")
    try:
        return text.decode("utf-8-sig") if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise _bad("it is not UTF-8 text") from None


def _check_events(source: str, most_nodes: int) -> None:
    """Refuse bombs before anything is built: aliases can expand to gigabytes, and deep nesting can fill the stack."""
    depth = nodes = 0
    for event in yaml.parse(source, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _bad(
                f"line {line}: anchors and aliases (`&`, `*`) are not allowed here; quote the value if it is text"
            )
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if nodes > most_nodes or depth > MAX_DEPTH:
            raise _bad(f"line {line}: it is nested too deeply, or holds too much")


def _entries(loader: yaml.SafeLoader, node: yaml.MappingNode) -> Iterator[YamlEntry]:
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise _bad(f"line {line}: a key must be a word")
        _check_numbers(value_node)
        try:
            value = loader.construct_object(value_node, deep=True)
        except (ValueError, OverflowError):  # such as a date that does not exist
            raise _bad(f"line {line}: the value cannot be read; quote it if it is text") from None
        entries = list(_entries(loader, value_node)) if isinstance(value_node, yaml.MappingNode) else None
        yield YamlEntry(_key(key_node.value), line, value, entries)


def _check_numbers(node: yaml.Node) -> None:
    """Refuse `010` (8 in YAML), `1:30` (90) and hexadecimal numbers of any length: nobody means those here."""
    if isinstance(node, yaml.CollectionNode):
        for item in node.value:
            _check_numbers(item[1] if isinstance(item, tuple) else item)
    elif isinstance(node, yaml.ScalarNode) and node.tag in _NUMBERS and not _NUMBER.fullmatch(node.value):
        text = _key(node.value) if len(node.value) <= 40 else f"{_key(node.value[:40])}…"
        line = node.start_mark.line + 1
        raise _bad(f"line {line}: `{text}` is not a plain number such as 30 or 2.5; quote it if it is text")


def _key(text: str) -> str:
    return "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in text[:60])
