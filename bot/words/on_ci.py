"""The checks of a pull request: what is waited for, left alone, tried and handed over."""

from __future__ import annotations

from collections.abc import Sequence

from bot.models import Outcome
from bot.text.markup import named, shown

MOST_NAMED = 20
MOST_ATTEMPTS = 3
REQUEST = "Fix what makes the checks of this pull request fail."
LOGS_NOT_ALLOWED = "logs of failed jobs: the App may not read them (permission Actions: read)"
STATUSES_NOT_ALLOWED = "commit statuses: the App may not read them (permission Commit statuses: read)"
RERUN_NOT_ALLOWED = (
    "a second run of the failed jobs, which would tell a flake from a failure: the App may not start one "
    "(permission Actions: write)"
)
RERUN_REFUSED = "a second run of the failed jobs, which would tell a flake from a failure: GitHub did not start one"
NO_RERUN = "a second run of the failed checks, which would tell a flake: none of them is a job of GitHub Actions"
HEAD_MOVED = "Somebody pushed before this began, so these checks belong to an older commit."
NOTHING_RED = "No check fails because of this pull request."


def listed(names: Sequence[str]) -> str:
    return named(list(dict.fromkeys(names)), MOST_NAMED, 80)


def left_alone(names: Sequence[str]) -> list[str]:
    return [f"checks that are red on the base too, and are left alone: {listed(names)}"] if names else []


def not_looked_at(names: Sequence[str]) -> list[str]:
    return [f"further failed checks, of which there were too many at once: {listed(names)}"] if names else []


def not_ended(names: Sequence[str]) -> list[str]:
    return [f"checks that had not ended by then: {listed(names)}"] if names else []


def no_log(name: str) -> str:
    return f"the log of {shown(name, 80)}: it could not be fetched"


def log_cut(name: str, size: int, *, whole: bool) -> str:
    end = "only its end was read" if whole else "its end was not reached in time"
    return f"most of the log of {shown(name, 80)}: {size >> 10} KiB, {end}"


def said_cut(name: str, size: int, most: int) -> str:
    return f"what {shown(name, 80)} says beyond the first {most} of {size} characters"


def annotations_cut(name: str, count: int, most: int) -> str:
    return f"annotations of {shown(name, 80)} beyond the first {most} of {count}"


def waits(sha: str, command: str) -> str:
    return (
        f"Checks of `{sha[:12]}`, or other work here, are still running. I will start when they have ended. "
        f"`{command} stop ci` cancels that."
    )


def cannot_be_read(sha: str, why: str, command: str) -> str:
    return (
        f"I could not read the checks of `{sha[:12]}`, so I did nothing about them: {shown(why, 300)}. Once that is "
        f"solved, ask again: `{command} fix ci`."
    )


def goes_on() -> str:
    return "I will look at the failed checks again, and fix what is still red."


def nothing_red(sha: str, undecided: Sequence[tuple[str, str]] = (), *, without_statuses: bool = False) -> str:
    """`undecided` are pairs of name and conclusion."""
    neither = named([f"{name} ({how.replace('_', ' ')})" for name, how in undecided], MOST_NAMED, 100)
    told = f" Neither passed nor failed: {neither}." if undecided else ""
    return f"No check of `{sha[:12]}` has failed, so there is nothing to fix.{told}{_unread(without_statuses)}"


def no_checks(sha: str, command: str, *, without_statuses: bool = False) -> str:
    return (
        f"No check has reported on `{sha[:12]}` so far, so there is nothing to fix. Once one is red: "
        f"`{command} fix ci`.{_unread(without_statuses)}"
    )


def _unread(without_statuses: bool) -> str:
    return f" Not looked at: {STATUSES_NOT_ALLOWED}." if without_statuses else ""


def never_ended(sha: str, names: Sequence[str], command: str) -> str:
    return (
        f"I stopped waiting: after half an hour, these checks of `{sha[:12]}` still have not ended: {listed(names)}. "
        f"Nothing else needs a fix. Once one of them is red: `{command} fix ci`."
    )


def red_below(sha: str, names: Sequence[str]) -> str:
    return (
        f"Red at `{sha[:12]}`: {listed(names)}. They are red on the base branch too, so this pull request did not "
        "break them, and I leave them alone."
    )


def was_a_flake(sha: str, names: Sequence[str]) -> str:
    return (
        f"{listed(names)} failed at `{sha[:12]}`. I had the failed jobs run once more, and they passed: a flake, not "
        "caused by this pull request. I changed nothing, and no agent was run."
    )


def stopped(command: str) -> str:
    return f"From now on, I leave the checks of this pull request alone, until somebody comments `{command} fix ci`."


def under_way(command: str) -> str:
    return f"I am already working on these checks. `{command} …` tells the agent more; `{command} stop ci` stops it."


def handed_over(
    attempts: Sequence[tuple[str, Sequence[str], Outcome | None, str | None]],
    red: Sequence[tuple[str, str]],
    inherited: Sequence[str],
    notes: Sequence[str],
    command: str,
) -> str:
    """`attempts`: the commit, what was red there, the outcome, the commit that it made. `red`: name and page."""
    rows = [
        f"### 🧰 These checks need a person: {len(attempts)} attempts did not fix them",
        "",
        "| at | red there | what I did |",
        "|---|---|---|",
    ]
    for sha, names, outcome, made in attempts:
        did = f"pushed {made[:12]}" if made else (outcome.value.replace("_", " ") if outcome else "is under way")
        rows.append(f"| `{sha[:12]}` | {listed(names)} | {did} |")
    rows += ["", "**Still red:**", ""]
    rows += [f"- {shown(name, 80)}{f' ([its page]({url}))' if url else ''}" for name, url in red[:MOST_NAMED]]
    rows += [f"- red on the base too: {listed(inherited)}"] if inherited else []
    rows += [f"- not read: {note}" for note in notes]
    rows += [
        "",
        "**What to do:** read the last logs and my commits, then push a fix, or say what to try: "
        f"`{command} fix ci`, with your hints on the lines below it, starts three new attempts. "
        f"`{command} undo` reverts my last commit, "
        f"`{command} stop ci` keeps me away from these checks.",
    ]
    return "\n".join(rows)
