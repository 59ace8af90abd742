"""Work on a pull request from a fork: suggestions, a patch and how to apply it, the way into a branch."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models import Fork, Outcome
from bot.text.markup import shown

SHORT = 12
"""The letters of a commit's name that an approval must give at least."""
FILE = "forgehand.patch"
_HEADLINES = {
    Outcome.PUSHED: "✅ Pushed to the fork's branch",
    Outcome.REVIEWED: "🩹 Suggested the changes",
    Outcome.ANSWERED: "🩹 Made a patch",
}


@dataclass(frozen=True)
class Patch:
    """A turn's work in the form in which others can apply it."""

    number: int
    fork: Fork
    sha: str
    block: str | None
    """The whole patch as a code block; None if a comment has no room for it or would change it."""
    kilobytes: int
    page: str = ""
    """Its download page, for people who may read the repository; empty if there is none."""
    command: str = ""
    """The operator gets the patch with this command."""


def headline(outcome: Outcome) -> str | None:
    return _HEADLINES.get(outcome)


def patch_marker(session: str, n: int) -> str:
    return f"<!-- forgehand:patch={session}-{n} -->"


def review_marker(session: str, n: int) -> str:
    return f"<!-- forgehand:suggested={session}-{n} -->"


def patch_comment(patch: Patch) -> str:
    where = "where that commit is checked out (the fork is gone)"
    if patch.fork.full_name is not None:
        where = f"in a clone of {shown(patch.fork.full_name, 200)}, on its branch {shown(patch.fork.branch, 200)}"
    size = f"{max(patch.kilobytes, 1):,} KB"
    if patch.block is not None:
        itself = f"<details><summary>The patch, {size}</summary>\n\n{patch.block}\n\n</details>"
    else:
        get = f"[download it]({patch.page}), or ask" if patch.page else "ask"
        why = "does not fit here, or a comment would change it"
        itself = f"The patch itself ({size}) {why}: {get} the operator for it (`{patch.command}`)."
    parts = [
        f"### 🩹 The work as a patch, for `{patch.sha[:SHORT]}`",
        f"Save it as `{FILE}` and apply it {where}:",
        f"```sh\ngit am --3way {FILE}\n```",
        f"To get the changes without a commit: `git apply --3way {FILE}`.",
        f"It is made for `{patch.sha}`. If something else is checked out, "
        f"`git fetch origin pull/{patch.number}/head` in a clone of this repository fetches that commit.",
        itself,
    ]
    return "\n\n".join(parts)


def review_body(made: int, many: int, sha: str) -> str:
    what, each = ("1 suggestion", "it") if made == 1 else (f"{made} suggestions", "each of them")
    are = "change is" if many - made == 1 else "changes are"
    rest = "" if made == many else f" {many - made} more {are} only in the patch, which has them all."
    return f"{what} for `{sha[:SHORT]}`; a click applies {each}.{rest}"


def suggested(made: int, many: int, url: str) -> str:
    """Tell the live comment. Applied suggestions do not keep the patch from applying (`--3way`)."""
    if made == many:
        return f"I cannot push to the fork, so [all changes]({url}) are suggestions there, and one patch below."
    return f"I cannot push to the fork: [{made} of {many} changes]({url}) are suggestions, all are in the patch below."


def patched(why: str = "") -> str:
    return f"{why} The work is a patch, in my comment below.".strip()


def cannot_push() -> str:
    return "I cannot push to the fork, and the changes are outside the lines that the diff shows."


def moved(sha: str, now: str) -> str:
    return f"The fork's branch moved to `{now[:SHORT]}` in the meantime; I read `{sha[:SHORT]}`."


def pushed(fork: Fork, sha: str) -> str:
    return f"Pushed `{sha[:SHORT]}` to {shown(fork.branch, 200)} of {shown(fork.full_name or '', 200)}."


def push_refused(words: str) -> str:
    """`words` are a code block."""
    return f"The fork refused the push:\n\n{words}\n\n"


def not_to_the_default_branch(branch: str) -> str:
    return f"I do not push to {shown(branch, 200)}, which is the fork's default branch or protected."


def not_signed() -> str:
    return "I do not push to the fork's branch, because `commits: verified` requires commits that GitHub has signed."


def offer(sha: str, command: str) -> str:
    return (
        f"**As a branch of this repository**, with the fork's own code up to `{sha[:SHORT]}` below it: "
        f"`{command} approve {sha[:SHORT]}`. Review that code first: this repository's checks will run it."
    )


def answered(sha: str, state: str, by: str | None) -> str:
    if by is None:
        return (
            f"**No longer open:** the fork's branch has moved on from `{sha[:SHORT]}`, or the time to answer is over."
        )
    return f"**Answered:** {shown(by, 60)} {'approved' if state == 'approved' else 'turned down'} `{sha[:SHORT]}`."


def what_next(outcome: Outcome, command: str) -> str | None:
    return {
        Outcome.PUSHED: f"Review the new commit. For changes, comment `{command} …`.",
        Outcome.REVIEWED: f"Apply what is right. For changes, comment `{command} …`; I continue from this work.",
        Outcome.ANSWERED: f"Apply the patch. For changes, comment `{command} …`; I continue from this work.",
    }.get(outcome)


def void(sha: str, now: str, command: str) -> str:
    return (
        f"Somebody pushed to the fork: its branch is at `{now[:SHORT]}` now, so a yes to `{sha[:SHORT]}` no longer "
        f"counts. Look at the new commits; `{command} …` works on them."
    )


def over(sha: str, command: str) -> str:
    return f"The time to approve `{sha[:SHORT]}` is over. `{command} …` works on the fork's branch as it is now."


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
    return f"The branch holds the commits of {whose} up to `{sha[:SHORT]}`, which somebody approved, and mine."


def no_conflicts_on_forks(command: str) -> str:
    return (
        "The branch is in a fork, to which I cannot push a merge. Its owner can merge the base in (GitHub's button "
        f"“Resolve conflicts”, or `git merge`); `{command} …` helps with what is unclear."
    )


def no_ci(command: str) -> str:
    return (
        f"I cannot push to a fork and watch its checks. `{command} …`, with words on what fails, works on the fork's "
        "code, and gives you suggestions and a patch."
    )


SETUP_LEFT_OUT = "the setup commands, which run on a fork's code only once somebody has approved it by its commit"
