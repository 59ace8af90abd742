"""The words of work on a pull request from a fork: suggestions, a patch and how to apply it, the way into a branch."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models import Fork, Outcome
from bot.words.quoting import shown

SHORT = 12
"""As many letters of a commit's name as an approval must give at least."""
FILE = "forgehand.patch"
_HEADLINES = {
    Outcome.PUSHED: "✅ Pushed to the fork's branch",
    Outcome.REVIEWED: "🩹 Suggested the changes",
    Outcome.ANSWERED: "🩹 Made a patch",
}


@dataclass(frozen=True)
class Patch:
    """A turn's work as it can be applied by others."""

    number: int
    """Of the pull request."""
    fork: Fork
    sha: str
    """The commit that it is made for."""
    block: str | None
    """The whole of it as a code block; None where that has no room in a comment, or would not arrive as it is."""
    kilobytes: int
    page: str = ""
    """Where it can be downloaded by who may read the repository; empty without a page."""
    command: str = ""
    """By which the operator gets it."""


def headline(outcome: Outcome) -> str | None:
    return _HEADLINES.get(outcome)


def patch_marker(session: str, n: int) -> str:
    return f"<!-- forgehand:patch={session}-{n} -->"


def review_marker(session: str, n: int) -> str:
    return f"<!-- forgehand:suggested={session}-{n} -->"


def patch_comment(patch: Patch) -> str:
    parts = [
        f"### 🩹 The work as a patch, for `{patch.sha[:SHORT]}`",
        f"Save it as `{FILE}` and apply it {_where(patch)}:",
        f"```sh\ngit am --3way {FILE}\n```",
        f"Without the commit that it carries: `git apply --3way {FILE}`.",
        f"It is made for `{patch.sha}`; where something else is checked out, "
        f"`git fetch origin pull/{patch.number}/head` in a clone of this repository brings that.",
        _itself(patch),
    ]
    return "\n\n".join(parts)


def _where(patch: Patch) -> str:
    if patch.fork.full_name is None:
        return "where that commit is checked out (the fork is gone)"
    return f"in a clone of {shown(patch.fork.full_name, 200)}, on its branch {shown(patch.fork.branch, 200)}"


def _itself(patch: Patch) -> str:
    if patch.block is not None:
        return f"<details><summary>The patch, {_size(patch)}</summary>\n\n{patch.block}\n\n</details>"
    page = f"[can be downloaded]({patch.page}), or by the operator" if patch.page else "can be had from the operator"
    why = "has no room here, or would not arrive as it is"
    return f"The patch itself ({_size(patch)}) {why}: it {page} (`{patch.command}`)."


def _size(patch: Patch) -> str:
    return "1 KB" if patch.kilobytes <= 1 else f"{patch.kilobytes:,} KB"


def review_body(made: int, many: int, sha: str) -> str:
    what = "1 suggestion" if made == 1 else f"{made} suggestions"
    each = "which" if made == 1 else "each of which"
    rest = "" if made == many else f" {many - made} more {_are(many - made)} in the patch only, which has them all."
    return f"{what} for `{sha[:SHORT]}`, {each} a click applies.{rest}"


def _are(many: int) -> str:
    return "change is" if many == 1 else "changes are"


def suggested(made: int, many: int, url: str) -> str:
    """For the live comment. What was applied by clicks is not in the way of the patch (`--3way`)."""
    if made == many:
        return f"I cannot push to the fork, so [all of it]({url}) stands there as suggestions, and as one patch below."
    return f"I cannot push to the fork: [{made} of {many} changes]({url}) are suggestions, all are in the patch below."


def patched(why: str = "") -> str:
    return f"{why} The work is a patch, in my comment below.".strip()


def cannot_push() -> str:
    return "I cannot push to the fork, and the changes are outside the lines that the diff shows."


def moved(sha: str, now: str) -> str:
    return f"The fork's branch was moved to `{now[:SHORT]}` meanwhile; what I read was `{sha[:SHORT]}`."


def pushed(fork: Fork, sha: str) -> str:
    return f"Pushed `{sha[:SHORT]}` to {shown(fork.branch, 200)} of {shown(fork.full_name or '', 200)}."


def push_refused(words: str) -> str:
    """`words` are in a code block already."""
    return f"The fork did not take a push:\n\n{words}\n\n"


def not_to_the_default_branch(branch: str) -> str:
    return f"I do not push to {shown(branch, 200)}, which is the fork's default branch or protected."


def not_signed() -> str:
    return "I do not push to the fork's branch, since `commits: verified` wants commits that GitHub has signed."


def offer(sha: str, command: str) -> str:
    return (
        f"**As a branch of this repository**, with the fork's own code up to `{sha[:SHORT]}` below it: "
        f"`{command} approve {sha[:SHORT]}`. Look that code through first; as a branch here it runs with this "
        "repository's checks."
    )


def answered(sha: str, state: str, by: str | None) -> str:
    if by is None:
        return f"**No longer open:** `{sha[:SHORT]}` is not what the fork's branch holds now, or its time is over."
    return f"**Answered:** {shown(by, 60)} {'approved' if state == 'approved' else 'turned down'} `{sha[:SHORT]}`."


def what_next(outcome: Outcome, command: str) -> str | None:
    return {
        Outcome.PUSHED: f"Review the new commit. For changes, comment `{command} …`.",
        Outcome.REVIEWED: f"Apply what is right. For changes, comment `{command} …`: it goes on from this work.",
        Outcome.ANSWERED: f"Apply the patch. For changes, comment `{command} …`: it goes on from this work.",
    }.get(outcome)


def void(sha: str, now: str, command: str) -> str:
    return (
        f"The fork was pushed to: its branch is at `{now[:SHORT]}` now, so a yes to `{sha[:SHORT]}` no longer "
        f"counts. Look at the new commits; `{command} …` works on them."
    )


def over(sha: str, command: str) -> str:
    return f"The time for a yes to `{sha[:SHORT]}` is over. `{command} …` works on the fork's branch as it is now."


def gone(command: str) -> str:
    return f"The work that was approved is no longer there (it is kept for 30 days). `{command} …` does it again."


def name_the_commit(sha: str, command: str) -> str:
    return f"A fork's code has to be approved by its commit: `{command} approve {sha[:SHORT]}`."


def no_such_commit(given: str) -> str:
    return (
        f"Nothing on this thread is waiting for a yes to commit {shown(given, 40)}: it is neither a fork's commit that "
        "I have worked on, nor one of mine that is held."
    )


def adopted(sha: str, fork: Fork | None) -> str:
    whose = shown(fork.full_name, 200) if fork and fork.full_name else "a fork"
    return f"The branch holds the commits of {whose} up to `{sha[:SHORT]}`, which was approved by that name, and mine."


def no_conflicts_on_forks(command: str) -> str:
    return (
        "The branch is in a fork, to which I cannot push a merge. Its owner can merge the base in (GitHub's button "
        f"“Resolve conflicts”, or `git merge`); `{command} …` helps with what is unclear."
    )


def no_ci(command: str) -> str:
    return (
        f"A fork's checks are its author's: I cannot push there and watch them. `{command} …` with words on what is "
        "red works on the fork's code, and hands over suggestions and a patch."
    )


SETUP_LEFT_OUT = "the setup commands, which run on a fork's code only once somebody has approved it by its commit"
