"""Reads `.github/forgehand.yml`: its keys, their types and defaults. An error names the key and the line."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from itertools import chain
from operator import attrgetter
from typing import Any, Literal

import msgspec

from bot.agent.findings import Severity
from bot.errors import BadRepoConfig
from bot.repo_config.mcp import McpOpening
from bot.repo_config.notify import NotifyRule
from bot.repo_config.values import KEYS, NAMED, ForPaths, PathRules, covered
from bot.repo_config.wrong import Wrong
from bot.repo_config.yaml import YamlEntry, read_entries

PATH = ".github/forgehand.yml"
MISNAMED = ".github/forgehand.yaml"
SCHEMA_AT = "/forgehand.schema.json"
"""The path at which the service offers the schema to editors."""


@dataclass(frozen=True)
class Tools:
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


@dataclass(frozen=True)
class SubagentRules:
    most: int | None = None
    at_once: int | None = None

    def within(self, most: int, at_once: int) -> tuple[int, int]:
        mine = most if self.most is None else min(most, self.most)
        return mine, at_once if self.at_once is None else min(at_once, self.at_once)


@dataclass(frozen=True)
class Triggers:
    """Everything besides a command that starts a session."""

    label: str | None = None
    issue_opened: bool = False
    review_team: str | None = None
    review_user: str | None = None
    review_label: str | None = None
    review_opened: bool = False
    review_pushed: bool = True
    """On by default, because it continues a review that someone asked for."""
    review_fixes: bool = True
    """On by default: a person asked for the review and for the fixes that it checks."""
    ci_fix: bool = False


@dataclass(frozen=True)
class Reviewing:
    approve: bool = False
    request_changes: bool = True
    threshold: Severity = Severity.NIT
    ignore: tuple[str, ...] = ()
    dismissed: tuple[ForPaths, ...] = ()


@dataclass(frozen=True)
class Pulls:
    closes: bool = False
    labels: tuple[str, ...] = ()
    request_review: bool = True
    template: bool = True


@dataclass(frozen=True)
class Pushing:
    blocked: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()


@dataclass(frozen=True)
class RepoConfig:
    model: str | None = None
    fallback: str | None = None
    budget: float | None = None
    """US dollars for a session."""
    ask_above: float | None = None
    """US dollars of a turn's estimate."""
    timeout: float | None = None
    """Seconds."""
    effort: str | None = None
    pace: bool = True
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
    mcp: tuple[McpOpening, ...] = ()
    submodules: bool = False
    lfs: bool = False
    registries: tuple[str, ...] = ()
    """Names of the account's package registries."""
    notify: tuple[NotifyRule, ...] = ()
    push: Pushing = field(default_factory=Pushing)
    paths: tuple[PathRules, ...] = ()
    """In the order of the file."""
    read_outsiders: bool = False
    dashboard: bool = False
    commits: str = "git"
    template: str | None = None
    instructions: str = ""

    @property
    def brings_more(self) -> bool:
        """Tell whether git's own data is not all that the sandbox gets."""
        return self.submodules or self.lfs

    def with_paths(self, patterns: Collection[str]) -> RepoConfig:
        """Add what it says for these paths: commands after the root's in the order of the file, the lowest budget."""
        more = [one for one in self.paths if one.pattern in patterns]
        if not more:
            return self
        budgets = [one for one in (self.budget, *(at.budget for at in more)) if one is not None]
        return replace(
            self,
            setup=tuple(dict.fromkeys(chain(self.setup, *(one.setup for one in more)))),
            checks=tuple(dict.fromkeys(chain(self.checks, *(one.checks for one in more)))),
            budget=min(budgets, default=None),
        )

    @property
    def has_checks(self) -> bool:
        """Tell whether it declares checks at all: some may hold for single paths only."""
        return bool(self.checks) or any(one.checks for one in self.paths)

    def opens_draft(self, *, verified: bool) -> bool:
        return self.draft if isinstance(self.draft, bool) else not verified

    def branch_name(self, thread: int, session: str) -> str:
        return self.branch.replace("{thread}", str(thread)).replace("{session}", session)


_SECTIONS: dict[str, Any] = {
    one.name: one.default_factory for one in fields(RepoConfig) if is_dataclass(one.default_factory)
}


def parse(text: str | bytes | None) -> RepoConfig:
    """Parse the file's text; None (no such file) and an empty file mean the defaults."""
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
    return BadRepoConfig(f"Forgehand does not read `{MISNAMED}`: rename it to `{PATH}`.")


def keep_from(config: RepoConfig, hosts: Iterable[str]) -> None:
    """Raise BadRepoConfig if `egress` would open a host that the service itself uses with credentials."""
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
            problems.append(f"{where} appears twice")
        elif not prefix and (section := _SECTIONS.get(entry.key)):
            if entry.entries is None and entry.value is not None:
                problems.append(f"{where} must hold keys: {', '.join(one.name for one in fields(section))}")
            values[entry.key] = _section(section, entry.entries or [], f"{entry.key}.", problems)
        elif _has_twins(entry):
            problems.append(f"{where} holds a key twice")
        else:
            try:
                values[entry.key] = KEYS[name].read(entry.value)
            except Wrong as wrong:
                problems.append(f"{where} {wrong}")
    return kind(**values)


def _has_twins(entry: YamlEntry) -> bool:
    """Tell whether a mapping below the key lost an entry, because YAML itself takes the last of two."""
    below = entry.entries or []
    return len(below) != len(entry.value if below else ()) or any(map(_has_twins, below))


def schema() -> dict[str, Any]:
    """Build the JSON Schema for editors; `parse` checks more than a schema can."""
    top: dict[str, Any] = {}
    for name, key in KEYS.items():
        section, _, inner = name.rpartition(".")
        place = top.setdefault(section, _object({}))["properties"] if section else top
        place[inner] = {**key.schema, "description": key.what}
    described = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": PATH}
    return described | _object(dict(sorted(top.items())))


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def in_words(config: RepoConfig) -> list[tuple[str, str]]:
    """Return each key that differs from its default, with its value and meaning."""
    found = []
    for name, key in KEYS.items():
        value, default = (attrgetter(name)(one) for one in (config, RepoConfig()))
        if value != default:
            found.append((name, f"{', '.join(map(str, value)) if isinstance(value, tuple) else value} ({key.what})"))
    return found


def dump(config: RepoConfig) -> str:
    """Write the config for the store: the config that a turn began with counts for all of it."""
    return msgspec.json.encode(asdict(config)).decode()


def load(text: str | None) -> RepoConfig:
    return msgspec.json.decode(text, type=RepoConfig) if text else RepoConfig()
