"""Reads the YAML of a repository's config into keys with their lines, under caps; anchors and tags are refused."""

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
    """One key of a mapping; `entries` when its value is a mapping itself."""

    key: str
    line: int
    value: Any
    entries: list[YamlEntry] | None


def read_entries(text: str | bytes) -> list[YamlEntry]:
    """The top mapping; nothing at all counts as an empty one."""
    source = _decoded(text)
    try:
        _check_events(source)
        loader = yaml.SafeLoader(source)
        try:
            node = loader.get_single_node()
            if node is None:
                return []
            if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
                return []
            if not isinstance(node, yaml.MappingNode):
                raise _bad(f"line {node.start_mark.line + 1}: the file must hold `key: value` lines")
            return list(_entries(loader, node))
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise _bad(f"{where}this is not YAML ({_words(error)})") from None
    except yaml.YAMLError:
        raise _bad("it holds characters that YAML does not allow") from None


def _words(error: yaml.MarkedYAMLError) -> str:
    return "".join(letter for letter in str(error.problem or error.context)[:120] if letter not in "`\r\n")


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


def _check_events(source: str) -> None:
    """Before anything is built: a few lines of aliases can stand for gigabytes, deep nesting for a full stack."""
    depth = nodes = 0
    for event in yaml.parse(source, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _bad(
                f"line {line}: anchors and aliases (`&`, `*`) are not allowed here; quote the value if it is text"
            )
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if nodes > MAX_NODES or depth > MAX_DEPTH:
            raise _bad(f"line {line}: it is nested too deeply, or holds too much")


def _entries(loader: yaml.SafeLoader, node: yaml.MappingNode) -> Iterator[YamlEntry]:
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise _bad(f"line {line}: a key must be a word")
        nested = isinstance(value_node, yaml.MappingNode)
        yield YamlEntry(
            key=_key(key_node.value),
            line=line,
            value=_value(loader, value_node, line),
            entries=list(_entries(loader, value_node)) if nested else None,
        )


def _value(loader: yaml.SafeLoader, node: yaml.Node, line: int) -> Any:
    _check_numbers(node)
    try:
        return loader.construct_object(node, deep=True)
    except (ValueError, OverflowError):  # such as a date that does not exist
        raise _bad(f"line {line}: the value cannot be read; quote it if it is text") from None


def _check_numbers(node: yaml.Node) -> None:
    """YAML takes `010` for 8 and `1:30` for 90, and a hexadecimal one of any length: nobody means that here."""
    if isinstance(node, yaml.CollectionNode):
        for item in node.value:
            _check_numbers(item[1] if isinstance(item, tuple) else item)
    elif isinstance(node, yaml.ScalarNode) and node.tag in _NUMBERS and not _NUMBER.fullmatch(node.value):
        text = _key(node.value) if len(node.value) <= 40 else f"{_key(node.value[:40])}…"
        line = node.start_mark.line + 1
        raise _bad(f"line {line}: `{text}` is no plain number such as 30 or 2.5; quote it if it is text")


def _key(text: str) -> str:
    return "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in text[:60])
