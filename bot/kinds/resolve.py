"""Merge conflicts: git merges the base branch, and the agent solves the rest."""

from __future__ import annotations

from bot.kinds.shape import Does, Traits, TurnPart

TRAITS = Traits(
    name="resolve",
    does=Does.CHANGES,
    task=(
        "The base branch was merged into the working directory. Solve the conflicts so that what both sides mean is "
        "kept; the files are named below, with what each side did to them. In a file, the pull request's side stands "
        "from <<<<<<< to |||||||, what both began with up to =======, and the base's side up to >>>>>>>: leave no such "
        "line. A file that only one side has deleted, or that is no text, is not marked: decide what becomes of it. "
        "Change nothing else, and do not merge yourself: that the result is a merge of both is seen to."
    ),
    unsaid="Resolve the merge conflicts.",
    named=True,
    goes_on=True,
    on_forks=False,
)


class Merge(TurnPart, frozen=True):
    sha: str | None = None
    """The merged commit of the base branch."""
    conflicts: tuple[str, ...] = ()
    """Paths that git could not merge."""
