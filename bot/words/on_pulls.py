"""Work on a pull request whose branch, base or state has changed since the work began."""

from __future__ import annotations

from collections.abc import Sequence

from bot.text.markup import named, shown

MOST_NAMED = 20


def branch_deleted(branch: str) -> str:
    return f"The branch {shown(branch, 200)} was deleted in the meantime, so there is nothing to push to."


def put_on_top(branch: str, sha: str, *, unchecked: bool) -> str:
    words = f"Others pushed to {shown(branch, 200)} in the meantime, so the work was put on top of `{sha[:12]}`."
    return f"{words} The checks below ran before that, not on the result." if unchecked else words


def does_not_fit(branch: str, sha: str) -> str:
    return (
        f"Others have moved {shown(branch, 200)} to `{sha[:12]}`, and the work conflicts with that. "
        "So nothing was pushed there: the work is on a separate branch, with a pull request against it."
    )


def moved_again(branch: str) -> str:
    return (
        f"Others kept pushing to {shown(branch, 200)} while I tried to push the work there. So it is on a separate "
        "branch, with a pull request against it."
    )


def ended_since(number: int, merged: bool) -> str:
    how = "merged" if merged else "closed"
    return f"The work was pushed to the branch of the pull request #{number}, which has been {how} since."


def closed_before_push(number: int, merged: bool) -> str:
    how = "merged" if merged else "closed"
    return f"The pull request #{number} was {how} in the meantime, so nothing was pushed to its branch."


def retargeted(number: int, was: str, now: str) -> str:
    return (
        f"The base of pull request #{number} was changed to {shown(now, 200)} in the meantime; the agent read the "
        f"rules and the diff against {shown(was, 200)}."
    )


def merged_the_wrong_base(number: int, was: str, now: str) -> str:
    return (
        f"The base of pull request #{number} was changed to {shown(now, 200)} while {shown(was, 200)} was being merged "
        "in, so nothing was pushed."
    )


def another_base(number: int, asked: str, base: str, *, beside: bool) -> str:
    """`beside`: the issue may get another pull request."""
    begins = ", or start another one with `--new-branch`" if beside else ""
    return (
        f"Nothing was started, because {shown(asked, 200)} cannot be the base here: the work belongs to pull request "
        f"#{number}, whose base is {shown(base, 200)}. Ask again without `--base`{begins}."
    )


def stands_beside(n: int, branch: str, number: int | None) -> str:
    if number:
        return f"#{number} contains only turn {n}'s push; close it to undo."
    return f"The branch {shown(branch, 200)} contains only turn {n}'s push; delete it to undo."


def resolve_needs_a_branch() -> str:
    return "There is no open pull request here whose base branch could be merged in."


def no_common_history(base: str) -> str:
    return (
        f"This branch and {shown(base, 200)} have no commit in common, as far as I looked back, so nothing was merged."
    )


def nothing_to_resolve(base: str, sha: str) -> str:
    return f"Nothing to resolve: this branch already has all of {shown(base, 200)} (`{sha[:12]}`)."


def merged_in(base: str, sha: str) -> str:
    return f"{_merged_in(base, sha)} without a conflict, so no agent was needed."


def solved(base: str, sha: str, conflicts: int, ours: Sequence[str], theirs: Sequence[str]) -> str:
    """`ours` and `theirs` are files left as on one side, on purpose or by oversight."""
    many = f"{conflicts} {'file was' if conflicts == 1 else 'files were'} in conflict"
    by = "" if len(ours) + len(theirs) >= conflicts else " and the agent solved that"
    told = [f"{_merged_in(base, sha)}; {many}{by}."]
    if ours:
        told.append(f"Left as in the pull request, without {shown(base, 200)}'s changes: {named(ours, MOST_NAMED)}.")
    if theirs:
        told.append(f"Taken from {shown(base, 200)}, without the pull request's changes: {named(theirs, MOST_NAMED)}.")
    return " ".join(told)


def _merged_in(base: str, sha: str) -> str:
    return f"{shown(base, 200)} (`{sha[:12]}`) was merged in"


def conflicts_left(paths: Sequence[str]) -> str:
    return f"Nothing was pushed, because there are still conflict markers in {named(paths, MOST_NAMED)}."
