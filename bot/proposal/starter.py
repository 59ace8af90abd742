"""Writes the config that `init` proposes: what passed, what did not, and an explanation of every key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from bot import repo_config
from bot.proposal import verification
from bot.proposal.trials import CommandTrial
from bot.repo_config import RepoConfig
from bot.repo_config.values import KEYS, may_be_opened
from bot.survey import LOOKED_FOR
from bot.words import on_init

WIDTH = 110
MOST_TAIL_LINES = 5
_UNQUOTED = re.compile(r"[A-Za-z][\w./-]*(?: [\w./=+-][\w./=+~-]*)+")
EXAMPLES = {
    "model": "claude-sonnet-5-5",
    "fallback": "claude-haiku-5-5",
    "effort": "high",
    "budget": "5",
    "timeout": "60m",
    "subagents.most": "20",
    "subagents.at_once": "4",
    "triggers.label": "false",
    "triggers.review_team": "reviewers",
    "triggers.review_user": "octocat",
    "triggers.review_label": "false",
    "ask_above": "5",
    "base": "main",
    "egress": "[packages.example.com]",
    "mcp": "{tracker: {tools: [find_issue, create_issue], permission: ask}}",
    "registries": "[internal-npm]",
    "notify": "[{to: team-chat, on: [ended, asks]}]",
    "template": "my-template",
    "paths": '{"services/pay/**": {checks: [make -C services/pay test]}}',
}
"""Values of keys that have no default, or none that tells much; the file shows the default of all others."""
_HEAD = """\
Settings for Forgehand in this repository. Every key is optional. Lines that begin with `##` explain; remove the `#` \
from the others to change a default. An unknown key is an error, and Forgehand explains it in a comment.\
"""
_SETUP = "Commands that prepare the sandbox before the agent starts."
_CHECKS = "Commands that verify the work on a clean checkout. The pull request shows their results."
_UNTRIED = "Forgehand found the commands below in the files of the repository, and has tried none of them."
_FAILED = "Tried without success, so not part of the config:"
_NOT_TRIED = "Not tried:"


def config(trials: Sequence[CommandTrial], where: str, *, schema_url: str = "", tails: bool = True) -> str:
    """Write the file. `where` says on which commit, and in what, the trials ran; it is empty if nothing was really
    tried. `tails`: with the ends of outputs."""
    passed = [one for one in trials if one.passed]
    lines = [f"# yaml-language-server: $schema={schema_url}"] if schema_url else []
    lines += [*_comment(_HEAD), ""]
    if trials:
        lines += [*_comment(f"Forgehand tried the commands below {where}." if where else _UNTRIED), ""]
    else:
        lines += [*_comment(on_init.nothing_recognised(LOOKED_FOR)), ""]
    for key, what in (("setup", _SETUP), ("checks", _CHECKS)):
        lines += [
            *_comment(what),
            *_listed(key, [one for one in passed if one.check.setup == (key == "setup")], tried=bool(where)),
            "",
        ]
    lines += _told(_FAILED, [one for one in trials if one.failed], tails=tails)
    lines += _told(_NOT_TRIED, [one for one in trials if not one.check.was_run], tails=False)
    lines += _explained(_hosts(trials))
    text = "\n".join(lines) + "\n"
    found = repo_config.parse(text)  # a proposal that Forgehand itself would not read helps nobody
    assert found == RepoConfig(setup=commands(trials, setup=True), checks=commands(trials, setup=False))
    return text


def commands(trials: Iterable[CommandTrial], *, setup: bool) -> tuple[str, ...]:
    return tuple(one.check.command for one in trials if one.passed and one.check.setup == setup)


def _listed(key: str, passed: Sequence[CommandTrial], *, tried: bool) -> Iterator[str]:
    if not passed:
        yield f"{key}: []"
        return
    yield f"{key}:"
    for one in passed:
        ending = f"; {verification.ending(one.check)}" if tried else ""
        yield from _comment(f"from {one.source}{ending}", indent="  ")
        yield f"  - {_scalar(one.check.command)}"


def _told(head: str, trials: Sequence[CommandTrial], *, tails: bool) -> Iterator[str]:
    if not trials:
        return
    yield from _comment(head)
    for one in trials:
        ending = on_init.EMPTY if one.empty else verification.ending(one.check)
        yield from _comment(f"{one.check.command}   ({one.source}; {ending})", indent="", deeper="  ")
        if one.hosts:
            yield from _comment(f"It could not reach {', '.join(one.hosts)} (see `egress`).", deeper="    ")
        last = one.check.tail.strip().splitlines()[-MOST_TAIL_LINES:] if tails else []
        for line in last:
            yield f"##     | {_plain(line)[:WIDTH]}".rstrip()
    yield ""


def _explained(hosts: Sequence[str]) -> Iterator[str]:
    """Explain all other keys, those of a section together."""
    rest = [name for name in KEYS if name not in ("setup", "checks")]
    order = list(dict.fromkeys(name.rpartition(".")[0] or name for name in rest))
    rest.sort(key=lambda name: order.index(name.rpartition(".")[0] or name))
    for section, names in groupby(rest, key=lambda name: name.rpartition(".")[0]):
        if section:
            yield f"#{section}:"
        indent = "  " if section else ""
        for name in names:
            value = f"[{', '.join(hosts)}]" if name == "egress" and hosts else _value(name)
            yield from (f"#{line}" if section else line for line in _comment(KEYS[name].what, indent=indent))
            yield f"#{indent}{name.rpartition('.')[2]}: {value}"
        if section:
            yield ""


def _value(name: str) -> str:
    """Show a value as YAML has it."""
    if name in EXAMPLES:
        return EXAMPLES[name]
    default = attrgetter(name)(RepoConfig())
    if isinstance(default, tuple):
        return "{}" if KEYS[name].schema.get("type") == "object" else "[]"
    return json.dumps(default)


def _hosts(trials: Iterable[CommandTrial]) -> list[str]:
    found = dict.fromkeys(host for one in trials for host in one.hosts)
    return [host for host in found if may_be_opened(host)]


def _comment(text: str, *, indent: str = "", deeper: str = "") -> Iterator[str]:
    """Break a sentence into lines of comment. Letters that end a line in YAML become spaces."""
    words, line = _plain(text).split(), ""
    for word in words:
        if line and len(line) + len(word) >= WIDTH:
            yield f"{indent}## {deeper}{line}"
            line = ""
        line = f"{line} {word}" if line else word
    yield f"{indent}## {deeper}{line}"


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _scalar(command: str) -> str:
    return command if _UNQUOTED.fullmatch(command) else json.dumps(command, ensure_ascii=False)
