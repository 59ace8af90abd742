"""The results of the repository's checks, as stored and as Forgehand (never the agent) tells them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from bot.text.markup import named, shown

MOST_CHECKS = 30
MOST_CHANGED = 5
MOST_TAILS = 5
MOST_TAIL = 2_000
NOTHING = "Add `checks` to `.github/forgehand.yml` (`{command} init` proposes the file), and Forgehand runs them."
NOT_RUN = "Forgehand ran none of the repository's `checks` on this commit."
NO_TIME = "no time was left"
NO_PLACE = "the sandboxes for it were lost one after the other, and the agent's too"
LOST = "the sandboxes for it were lost one after the other"
NO_ROOM = "there was no room for another sandbox"
NOT_MADE = "no fresh sandbox could be made for it"
NOT_FURNISHED = "the commit could not be checked out in a fresh sandbox"


class CheckPlace(StrEnum):
    FRESH = "fresh"
    """A fresh environment, on a clean checkout."""
    AGENT = "agent"
    """The agent's environment, with whatever it left there."""


@dataclass(frozen=True)
class CheckedCommand:
    """One command. Without an `exit_code` it did not run."""

    command: str
    exit_code: int | None
    where: CheckPlace = CheckPlace.FRESH
    sha: str = ""
    seconds: float | None = None
    tail: str = ""
    timed_out: bool = False
    setup: bool = False
    """A `setup` command; only a failed one is shown."""
    base_exit_code: int | None = None
    """The same command without the work, if that was tried."""
    why_not: str = NO_TIME
    changed: Sequence[str] = ()
    """Files of the checkout that the command changed."""

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
        """Return True if the check fails and, as far as is known, only with the work."""
        return self.was_run and not self.passed and not self.is_red_on_base


def not_run(commands: Sequence[str], why: str) -> list[CheckedCommand]:
    return [CheckedCommand(command, None, why_not=why) for command in commands]


def dump(checks: Sequence[CheckedCommand]) -> list[dict[str, Any]]:
    return [asdict(one) for one in checks]


def load(rows: Sequence[Mapping[str, Any]]) -> list[CheckedCommand]:
    """Read also rows of earlier versions, which have fewer fields."""
    known = CheckedCommand.__dataclass_fields__
    return [CheckedCommand(**{name: value for name, value in row.items() if name in known}) for row in rows]


def renamed(rows: Sequence[Mapping[str, Any]], commit: str, name: str) -> list[dict[str, Any]]:
    return [{**row, "sha": name} if row.get("sha") == commit else dict(row) for row in rows]


def all_passed(rows: Sequence[Mapping[str, Any]] | None, commit: str | None = None) -> bool:
    """Decide whether every declared check passed in a fresh environment, and on `commit` if one is named. If there was
    nothing to run, nothing was verified."""
    checks = load(rows or ())
    if not checks or (commit is not None and any(one.sha != commit for one in checks)):
        return False
    return all(one.passed and one.where == CheckPlace.FRESH for one in checks)


def work_fails(rows: Sequence[Mapping[str, Any]] | None) -> bool:
    """Decide whether the work is to blame: a check that fails on the base too is no reason to doubt it."""
    return any(one.is_ours for one in load(rows or ()))


def heading(rows: Sequence[Mapping[str, Any]]) -> str:
    return "Verified by Forgehand" if any(one.was_run for one in load(rows)) else "Not verified"


def without_checks(command: str, *, declared: bool) -> str:
    """Tell why nothing was verified; `declared`: there are checks to run."""
    return NOT_RUN if declared else NOTHING.format(command=command)


def words(rows: Sequence[Mapping[str, Any]], block: Callable[[str], str], *, mended: bool = False) -> str:
    """Tell people; `block` makes a code block that its text cannot leave."""
    checks = load(rows)
    lines = [
        f"- {'✓' if one.passed else '✗'} {'setup ' * one.setup}{shown(one.command, 200)} {ending(one)}{_changed(one)}"
        for one in checks[:MOST_CHECKS]
    ]
    if rest := checks[MOST_CHECKS:]:
        lines.append(f"- and {len(rest)} more, {sum(not one.passed for one in rest)} of them failed")
    place = f"Run {where(checks)}:" if any(one.was_run for one in checks) else NOT_RUN
    again = ["Some failed at first: the agent got their output and one try to fix them."] if mended else []
    tails = [_tail(one, block) for one in checks if not one.passed and one.tail.strip()]
    return "\n\n".join([place, "\n".join(lines), *again, *tails[:MOST_TAILS]])


def where(checks: Sequence[CheckedCommand]) -> str:
    if any(one.where == CheckPlace.AGENT for one in checks):
        return "in the agent's own sandbox (no fresh one was available, so what the agent left there may matter)"
    sha = next((one.sha for one in checks if one.sha), "")
    return f"on a clean checkout{f' of {sha[:12]}' if sha else ''} in a fresh sandbox"


def _changed(one: CheckedCommand) -> str:
    if not one.changed:
        return ""
    files = named(one.changed, MOST_CHANGED)
    return f"; **it changed** {files}, so later checks did not run on the unchanged commit"


def ending(one: CheckedCommand) -> str:
    if not one.was_run:
        return f"was not run: {one.why_not}"
    took = f", {one.seconds:.1f} s" if one.seconds is not None else ""
    limit = " (its time was up)" if one.timed_out else ""
    on_base = ""
    if one.base_exit_code is not None:
        on_base = " (fails on the base too)" if one.base_exit_code else " (passes on the base)"
    return f"exit {one.exit_code}{took}{limit}{on_base}"


def _tail(one: CheckedCommand, block: Callable[[str], str]) -> str:
    text = one.tail.strip()
    cut = text if len(text) <= MOST_TAIL else "…" + text[-MOST_TAIL:]
    plain = re.sub(r"[^\w ./:=+,-]", "?", " ".join(one.command.split()))  # neither markdown nor HTML
    command = plain if len(plain) <= 80 else f"{plain[:79]}…"
    return f"<details><summary>The end of what {command} printed</summary>\n\n{block(cut)}\n\n</details>"
