"""What the repository's own checks gave, as it is stored and as it is told: by us, and never by the agent. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from bot.words.quoting import shown

MOST_CHECKS = 30
MOST_CHANGED = 5
"""Of the files that a check has changed."""
MOST_TAILS = 5
MOST_TAIL = 2_000
NOTHING = "Nothing: `.github/forgehand.yml` names no `checks` to run."
NOT_RUN = "None of the repository's `checks` was run by Forgehand on this commit."
NO_TIME = "no time was left"
NO_PLACE = "the environments for it were lost one after the other, and the agent's too"
LOST = "the environments for it were lost one after the other"
NO_ROOM = "there was no room for another environment"
NOT_MADE = "no fresh environment could be made for it"
NOT_FURNISHED = "the commit could not be checked out in a fresh environment"


class Where(StrEnum):
    FRESH = "fresh"
    """A fresh environment, on a clean checkout."""
    AGENT = "agent"
    """The environment in which the agent had worked: whatever it left there was there."""


@dataclass(frozen=True)
class Check:
    """One command. `exit_code` is None where it was not run."""

    command: str
    exit_code: int | None
    where: Where = Where.FRESH
    sha: str = ""
    """Of the commit that it was run on."""
    seconds: float | None = None
    tail: str = ""
    timed_out: bool = False
    setup: bool = False
    """One of the `setup` commands: those are told only where they fail."""
    base_exit_code: int | None = None
    """Of the same command without the work, where that was tried."""
    why_not: str = NO_TIME
    """It was not run, where it was not."""
    changed: Sequence[str] = ()
    """Files of the checkout that were as the commit has them before it, and not after it."""

    @property
    def was_run(self) -> bool:
        return self.exit_code is not None

    @property
    def passed(self) -> bool:
        return self.exit_code == 0

    @property
    def is_red_on_base(self) -> bool:
        return bool(self.base_exit_code)

    @property
    def is_ours(self) -> bool:
        """It fails, and as far as is known not without the work."""
        return self.was_run and not self.passed and not self.is_red_on_base


def not_run(commands: Sequence[str], why: str) -> list[Check]:
    return [Check(command, None, why_not=why) for command in commands]


def dump(checks: Sequence[Check]) -> list[dict[str, Any]]:
    return [asdict(one) for one in checks]


def load(rows: Sequence[Mapping[str, Any]]) -> list[Check]:
    """Also rows of earlier versions, which say less."""
    known = Check.__dataclass_fields__
    return [Check(**{name: value for name, value in row.items() if name in known}) for row in rows]


def renamed(rows: Sequence[Mapping[str, Any]], commit: str, name: str) -> list[dict[str, Any]]:
    """The same of a commit that has another name where people look."""
    return [{**row, "sha": name} if row.get("sha") == commit else dict(row) for row in rows]


def all_passed(rows: Sequence[Mapping[str, Any]] | None, commit: str | None = None) -> bool:
    """Whether every declared check has passed on a clean checkout in a fresh environment; of that commit, if one is
    named. Where there was nothing to run, nothing was verified."""
    checks = load(rows or ())
    if not checks or (commit is not None and any(one.sha != commit for one in checks)):
        return False
    return all(one.passed and one.where == Where.FRESH for one in checks)


def work_fails(rows: Sequence[Mapping[str, Any]] | None) -> bool:
    """By what was changed: what fails on the base too is told, and is no reason to doubt it."""
    return any(one.is_ours for one in load(rows or ()))


def words(
    rows: Sequence[Mapping[str, Any]], block: Callable[[str], str], *, mended: bool = False, declared: bool = False
) -> str:
    """For people; `block` makes a code block that its own text cannot leave. `declared`: there are some to run."""
    checks = load(rows)
    if not checks:
        return NOT_RUN if declared else NOTHING
    lines = [_line(one) for one in checks[:MOST_CHECKS]]
    if rest := checks[MOST_CHECKS:]:
        lines.append(f"- and {len(rest)} more, {sum(not one.passed for one in rest)} of them failed")
    again = "\n\nSome failed at first: the agent was given their output, once, to fix them." if mended else ""
    tails = [_tail(one, block) for one in checks if not one.passed and one.tail.strip()]
    head = f"{_place(checks)}\n\n" + "\n".join(lines)
    return "\n\n".join([head + again, *tails[:MOST_TAILS]])


def _place(checks: Sequence[Check]) -> str:
    return f"Run {where(checks)}:" if any(one.was_run for one in checks) else NOT_RUN


def where(checks: Sequence[Check]) -> str:
    if any(one.where == Where.AGENT for one in checks):
        return "in the agent's own environment (no fresh one was available, so what the agent left there may matter)"
    sha = next((one.sha for one in checks if one.sha), "")
    return f"on a clean checkout{f' of {sha[:12]}' if sha else ''} in a fresh environment"


def _line(one: Check) -> str:
    sign, kind = ("✓" if one.passed else "✗"), ("setup " if one.setup else "")
    return f"- {sign} {kind}{shown(one.command, 200)} {ending(one)}{_changed(one)}"


def _changed(one: Check) -> str:
    """What ran after it did not run on the commit as it is."""
    if not one.changed:
        return ""
    more = f" and {len(one.changed) - MOST_CHANGED} more" if len(one.changed) > MOST_CHANGED else ""
    named = ", ".join(shown(path, 200) for path in one.changed[:MOST_CHANGED])
    return f"; **it changed** {named}{more}, so what ran after it did not run on the commit as it is"


def ending(one: Check) -> str:
    if not one.was_run:
        return f"was not run: {one.why_not}"
    took = f", {one.seconds:.1f} s" if one.seconds is not None else ""
    limit = " (its time was up)" if one.timed_out else ""
    return f"exit {one.exit_code}{took}{limit}{_on_base(one)}"


def _on_base(one: Check) -> str:
    if one.base_exit_code is None:
        return ""
    return " (fails on the base too)" if one.base_exit_code else " (passes on the base)"


def _tail(one: Check, block: Callable[[str], str]) -> str:
    text = one.tail.strip()
    cut = text if len(text) <= MOST_TAIL else "…" + text[-MOST_TAIL:]
    return f"<details><summary>The end of what {_plain(one.command)} printed</summary>\n\n{block(cut)}\n\n</details>"


def _plain(command: str) -> str:
    """Words that are neither markdown nor HTML: they stand in the summary of a fold."""
    text = re.sub(r"[^\w ./:=+,-]", "?", " ".join(command.split()))
    return text if len(text) <= 80 else f"{text[:79]}…"
