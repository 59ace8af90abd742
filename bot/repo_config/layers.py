"""Lays configs over one another, such as a repository's own file over the defaults of its account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from operator import attrgetter
from typing import Any

from bot.repo_config import RepoConfig, parse
from bot.repo_config.values import KEYS
from bot.repo_config.yaml import read_entries

LIMITS = frozenset(("budget", "ask_above", "timeout", "most", "at_once"))
"""The last part of keys whose lower value counts, wherever it stands."""
MOST_SHOWN = 300
WORDS = frozenset(("instructions", "review.dismissed"))
"""Keys whose values are words for agents, who could repeat them."""
REFUSALS = frozenset(("denied", "blocked", "sensitive"))
"""The last part of keys that a layer can only add to."""


@dataclass(frozen=True)
class ConfigOrigin:
    whose: str
    line: int | None = None

    def __str__(self) -> str:
        return self.whose if self.line is None else f"{self.whose}, line {self.line}"


@dataclass(frozen=True)
class ConfigLayer:
    config: RepoConfig
    origins: Mapping[str, ConfigOrigin]
    """The keys that it sets."""

    def silent(self) -> ConfigLayer:
        """Return it without its words for agents."""
        paths = tuple(filter(None, (one.silent() for one in self.config.paths)))
        review = replace(self.config.review, dismissed=())
        config = replace(self.config, instructions="", review=review, paths=paths)
        kept = {name: one for name, one in self.origins.items() if name not in WORDS and (name != "paths" or paths)}
        return ConfigLayer(config, kept)


@dataclass(frozen=True)
class LayeredConfig:
    config: RepoConfig = field(default_factory=RepoConfig)
    origins: Mapping[str, tuple[ConfigOrigin, ...]] = field(default_factory=dict)
    """The layers that each value comes from, for the keys that some layer sets."""

    def under(self, layer: ConfigLayer) -> LayeredConfig:
        """Put a layer on top."""
        config, origins = self.config, dict(self.origins)
        for name, origin in layer.origins.items():
            mine, theirs = (attrgetter(name)(one) for one in (config, layer.config))
            if name not in origins:
                value, found = theirs, (origin,)
            else:
                value, kept, taken = _joined(name, mine, theirs)
                found = (*(origins[name] if kept else ()), *((origin,) if taken else ()))
            section, _, inner = name.rpartition(".")
            part = replace(getattr(config, section), **{inner: value}) if section else value
            config, origins[name] = replace(config, **{section or inner: part}), found
        return LayeredConfig(config, origins)

    def rows(self) -> list[dict[str, str]]:
        """List each key that some layer sets, with its value (its beginning) and its origin, in words."""
        rows = []
        for name in sorted(self.origins):
            value, source = attrgetter(name)(self.config), " and ".join(map(str, self.origins[name]))
            row = {"key": name, "value": in_words(name, value)[:MOST_SHOWN], "source": source}
            is_limit = name.rpartition(".")[2] in LIMITS and value is not None
            rows.append(row | {"number": str(value)} if is_limit else row)
        return rows


def of_file(text: str | bytes, whose: str) -> ConfigLayer:
    """Read a file; BadRepoConfig if it cannot be used."""
    config, origins = parse(text), {}
    for entry in read_entries(text):
        below = [(f"{entry.key}.{inner.key}", inner.line) for inner in entry.entries or []]
        named = [(entry.key, entry.line)] if entry.key in KEYS else below
        origins.update({name: ConfigOrigin(whose, line) for name, line in named})
    return ConfigLayer(config, origins)


def in_words(name: str, value: Any) -> str:
    if value in (None, (), ""):
        return "none"
    if name == "timeout":
        return f"{value / 60:g} min"
    if isinstance(value, float):
        return f"${value:,.2f}"
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _joined(name: str, below: Any, above: Any) -> tuple[Any, bool, bool]:
    """Return the value, and whether the lower and the upper layer have a part in it. Lists replace, maps merge, limits
    only narrow."""
    last = name.rpartition(".")[2]
    if last in LIMITS and below is not None and above is not None:
        return min(below, above), below < above, above <= below
    if last in REFUSALS:
        return tuple(dict.fromkeys((*below, *above))), bool(below), bool(above)
    if name == "paths":
        known = {one.pattern: one for one in below}
        joined = {one.pattern: one.over(known[one.pattern]) if one.pattern in known else one for one in above}
        return tuple((known | joined).values()), bool(below), bool(above)
    if isinstance(above, tuple) and all(is_dataclass(one) for one in (*below, *above)) and (below or above):
        first = next(fields(one)[0].name for one in (*below, *above))  # an entry of a map is known by its first field
        mine = {getattr(one, first) for one in above}
        kept = tuple(one for one in below if getattr(one, first) not in mine)
        return (*kept, *above), bool(kept), bool(above)
    return above, False, True
