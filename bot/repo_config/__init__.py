"""Knows `.github/forgehand.yml`: its keys, their types and defaults; a mistake is named with its key and line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import msgspec

from bot.errors import BadRepoConfig
from bot.repo_config.values import KEYS, NAMED, READERS, Wrong, covered
from bot.repo_config.yaml import YamlEntry, read_entries

PATH = ".github/forgehand.yml"
MISNAMED = ".github/forgehand.yaml"
SCHEMA_AT = "/forgehand.schema.json"
"""Where the service has the schema for editors."""


@dataclass(frozen=True)
class Tools:
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


@dataclass(frozen=True)
class SubagentRules:
    """Where the repository wants fewer than the operator allows."""

    most: int | None = None
    at_once: int | None = None

    def within(self, most: int, at_once: int) -> tuple[int, int]:
        """How many a turn may start, and how many at once, where the operator allows so many."""
        mine = most if self.most is None else min(most, self.most)
        return mine, at_once if self.at_once is None else min(at_once, self.at_once)


@dataclass(frozen=True)
class Triggers:
    """What starts a session besides a command; everything is off unless it stands here."""

    label: str | None = None
    issue_opened: bool = False
    review_team: str | None = None
    review_user: str | None = None
    review_label: str | None = None
    review_opened: bool = False
    review_pushed: bool = True
    """The one that is on: it goes on with what somebody has asked for."""
    ci_fix: bool = False


@dataclass(frozen=True)
class Reviewing:
    """What a review of ours may say beyond words."""

    approve: bool = False
    request_changes: bool = True


@dataclass(frozen=True)
class Pulls:
    """What our pull requests are like."""

    closes: bool = False
    labels: tuple[str, ...] = ()
    request_review: bool = True
    template: bool = True


@dataclass(frozen=True)
class Paths:
    blocked: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()


@dataclass(frozen=True)
class RepoConfig:
    model: str | None = None
    budget: float | None = None
    """US dollars for a session."""
    timeout: float | None = None
    """Seconds."""
    permission: str = "auto"
    tools: Tools = field(default_factory=Tools)
    subagents: SubagentRules = field(default_factory=SubagentRules)
    triggers: Triggers = field(default_factory=Triggers)
    review: Reviewing = field(default_factory=Reviewing)
    base: str | None = None
    branch: str = "forgehand/{thread}-{session}"
    draft: bool | Literal["until_verified"] = True
    pull: Pulls = field(default_factory=Pulls)
    setup: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    egress: tuple[str, ...] = ()
    paths: Paths = field(default_factory=Paths)
    read_outsiders: bool = False
    commits: str = "git"
    template: str | None = None
    instructions: str = ""

    def opens_draft(self, *, verified: bool) -> bool:
        return self.draft if isinstance(self.draft, bool) else not verified

    def branch_name(self, thread: int, session: str) -> str:
        return self.branch.replace("{thread}", str(thread)).replace("{session}", session)


_SECTIONS: dict[str, type[Any]] = {
    "tools": Tools,
    "subagents": SubagentRules,
    "triggers": Triggers,
    "review": Reviewing,
    "pull": Pulls,
    "paths": Paths,
}


def parse(text: str | bytes | None) -> RepoConfig:
    """The config in the file's text; None (no such file) and an empty file mean the defaults."""
    if text is None:
        return RepoConfig()
    problems: list[str] = []
    config: RepoConfig = _section(RepoConfig, read_entries(text), "", problems)
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems[:10])
        more = f"\n- and {len(problems) - 10} more" if len(problems) > 10 else ""
        raise BadRepoConfig(f"`{PATH}` cannot be used as it is:\n\n{listed}{more}")
    return config


def misnamed() -> BadRepoConfig:
    """Whoever wrote it believes that it counts."""
    return BadRepoConfig(f"`{MISNAMED}` is not read: rename it to `{PATH}`, so that what it says counts.")


def keep_from(config: RepoConfig, hosts: Iterable[str]) -> None:
    """BadRepoConfig where its `egress` would open one of the hosts that the operator has made ours."""
    for host in config.egress:
        if never := covered(host, sorted(hosts)):
            raise BadRepoConfig(f"`{PATH}` cannot be used as it is:\n\n- `egress` {NAMED.format(never)}")


def _section(kind: type[Any], entries: list[YamlEntry], prefix: str, problems: list[str]) -> Any:
    known = [one.name for one in fields(kind)]
    values: dict[str, Any] = {}
    for entry in entries:
        name = prefix + entry.key
        where = f"line {entry.line}: `{name}`"
        if entry.key not in known:
            problems.append(f"line {entry.line}: there is no key `{name}`; known here: {', '.join(known)}")
        elif entry.key in values:
            problems.append(f"{where} stands there twice")
        elif not prefix and entry.key in _SECTIONS:
            nested = _nested(entry, where, problems)
            values[entry.key] = _section(_SECTIONS[entry.key], nested, f"{entry.key}.", problems)
        else:
            try:
                values[entry.key] = READERS[name](entry.value)
            except Wrong as wrong:
                problems.append(f"{where} {wrong}")
    return kind(**values)


def _nested(entry: YamlEntry, where: str, problems: list[str]) -> list[YamlEntry]:
    if entry.entries is None and entry.value is not None:
        problems.append(
            f"{where} must hold keys of its own ({', '.join(f.name for f in fields(_SECTIONS[entry.key]))})"
        )
    return entry.entries or []


def schema() -> dict[str, Any]:
    """As JSON Schema, for editors; `parse` is stricter where a schema cannot say it."""
    top: dict[str, Any] = {}
    for name, key in KEYS.items():
        section, _, inner = name.rpartition(".")
        place = top.setdefault(section, _object({}))["properties"] if section else top
        place[inner] = {**key.schema, "description": key.what}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": PATH,
        **_object(dict(sorted(top.items()))),
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def in_words(config: RepoConfig) -> list[tuple[str, str]]:
    """Each key that differs from its default, with what it does."""
    plain = RepoConfig()
    found = []
    for name, key in KEYS.items():
        section, _, inner = name.rpartition(".")
        mine, default = (getattr(one, section) if section else one for one in (config, plain))
        if (value := getattr(mine, inner)) != getattr(default, inner):
            found.append((name, f"{', '.join(value) if isinstance(value, tuple) else value} ({key.what})"))
    return found


def dump(config: RepoConfig) -> str:
    """For the store: a turn is judged by the config that it began with."""
    return msgspec.json.encode(asdict(config)).decode()


def load(text: str | None) -> RepoConfig:
    """What `dump` wrote; None: the defaults."""
    return msgspec.json.decode(text, type=RepoConfig) if text else RepoConfig()
