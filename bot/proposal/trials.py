"""Tries the candidates for a config, one after the other, and remembers what became of each."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import msgspec

from bot.proposal.verification import CheckedCommand
from bot.survey import Candidate

MOST_TRIED = 24
TOO_MANY = f"at most {MOST_TRIED} commands are tried"
MOST_HOSTS = 6
_RAN_NOTHING = re.compile(r"^(?:Ran 0 tests in|NO TESTS RAN|no tests ran in|collected 0 items|running 0 tests\b)", re.M)
_RAN_SOMETHING = re.compile(r"^(?:Ran [1-9]|running [1-9]|ok\s)", re.M)
_OFFLINE = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|Temporary failure in name resolution|Could not resolve|"
    r"Name or service not known|Network is unreachable|Tunnel connection failed|no such host|407 Proxy|"
    r"Failed to establish a new connection",
    re.IGNORECASE,
)

Run = Callable[[str, bool], Awaitable[tuple[CheckedCommand, Sequence[str]]]]
"""Runs a command, which is one for `setup` or not; returns how it ended, and the hosts that it asked for in vain."""


@dataclass(frozen=True)
class CommandTrial:
    """A candidate and what became of it."""

    check: CheckedCommand
    source: str
    goal: str
    hosts: tuple[str, ...] = ()
    """Hosts that it would need, as far as is known."""
    empty: bool = False
    """It ended well, but has shown nothing."""

    @property
    def passed(self) -> bool:
        return self.check.passed and not self.empty

    @property
    def failed(self) -> bool:
        return self.check.was_run and not self.passed


def dump(trials: Iterable[CommandTrial]) -> tuple[dict[str, Any], ...]:
    return tuple(msgspec.to_builtins(one) for one in trials)


def load(rows: Iterable[Mapping[str, Any]]) -> list[CommandTrial]:
    return [msgspec.convert(row, CommandTrial) for row in rows]


def passed(found: Iterable[CommandTrial]) -> list[Candidate]:
    """Turn what passed into candidates again, to be tried without what failed."""
    return [
        Candidate(one.check.command, f"{at}", one.source, setup=one.check.setup)
        for at, one in enumerate(found)
        if one.passed
    ]


def confirmed(found: Sequence[CommandTrial], again: Sequence[CommandTrial]) -> list[CommandTrial]:
    """Let the second trial of a command count."""
    known = {one.check.command: one for one in again}
    return [
        replace(one, check=known[one.check.command].check, empty=known[one.check.command].empty)
        if one.check.command in known
        else one
        for one in found
    ]


async def try_all(candidates: Sequence[Candidate], run: Run) -> list[CommandTrial]:
    """Try all goals in their order; for each, the candidates until one passes."""
    trials, found = _Trials(run), list[CommandTrial]()
    goals = list(dict.fromkeys(one.goal for one in candidates))
    ordered = sorted(candidates, key=lambda one: (not one.setup, goals.index(one.goal)))
    for _, alternatives in groupby(ordered, key=lambda one: one.goal):
        for one in alternatives:
            found.append(await trials.of(one))
            if found[-1].passed:
                break
    return found


class _Trials:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._count = 0
        self._inside: dict[str, str] = {}
        self._failed: dict[str, str] = {}

    async def of(self, one: Candidate) -> CommandTrial:
        inside = self._inside.get(one.ecosystem, "") if not one.setup else ""
        if not one.ecosystem and len(self._inside) == 1:  # a target whose recipe does not tell
            inside = next(iter(self._inside.values()))
        command = one.line(inside)
        if why := self._why_not(one):
            return CommandTrial(CheckedCommand(command, None, why_not=why, setup=one.setup), one.source, one.goal)
        self._count += 1
        check, asked = await self._run(command, one.setup)
        found = CommandTrial(
            check, one.source, one.goal, empty=check.passed and not one.setup and _shows_nothing(check.tail)
        )
        if one.setup:
            self._note_setup(one, found)
        return found if found.passed else replace(found, hosts=_hosts(one, check, asked))

    def _why_not(self, one: Candidate) -> str:
        if not one.alone and (failed := self._failed.get(one.ecosystem)):
            return f"it needs `{failed}`, which failed"
        return TOO_MANY if self._count >= MOST_TRIED else ""

    def _note_setup(self, one: Candidate, found: CommandTrial) -> None:
        if found.passed:
            self._failed.pop(one.ecosystem, None)
            if one.inside:
                self._inside[one.ecosystem] = one.inside
        else:
            self._failed[one.ecosystem] = found.check.command


def _shows_nothing(tail: str) -> bool:
    return bool(_RAN_NOTHING.search(tail)) and not _RAN_SOMETHING.search(tail)


def _hosts(one: Candidate, check: CheckedCommand, asked: Sequence[str]) -> tuple[str, ...]:
    """Name the hosts that it asked for; one of a registry brings the others of it."""
    offline = not asked and check.was_run and _OFFLINE.search(check.tail)
    registry = one.hosts if offline or set(asked) & set(one.hosts) else ()
    return tuple(dict.fromkeys((*asked, *registry)))[:MOST_HOSTS]
