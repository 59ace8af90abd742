"""The sentences about submodules: which stay empty and why, and what becomes of changes to them."""

from __future__ import annotations

from bot.text.markup import shown

ON_A_FORK = "Submodules stay empty and LFS files stay pointers, because this is a fork's code."


def stays_empty(path: str, why: str) -> str:
    return f"The submodule {shown(path, 200)} stays empty: {why}."


def more_stay_empty(count: int) -> str:
    return f"{count} more submodules stay empty."


def not_named(branch: str) -> str:
    return f"`.gitmodules` of the branch {shown(branch, 100)} does not name it, or names it twice"


def not_open(full_name: str, login: str) -> str:
    """One reason for all of these, so that it tells nobody which private repositories exist."""
    return f"the App must be installed on {full_name} by the same owner, and {login} must be able to read it"


def reaches_the_public(full_name: str) -> str:
    return f"{full_name} is private, and everybody can read this thread"


def is_itself() -> str:
    return "it is this repository itself"


def too_deep(most: int) -> str:
    return f"submodules are opened {most} levels deep"


def too_many(most: int) -> str:
    return f"at most {most} submodules are opened"


def too_large(most: int) -> str:
    return f"all submodules together have more than {most >> 20} MiB"


def no_commit(full_name: str, sha: str) -> str:
    return f"{full_name} has no commit {sha[:12]}; push it there first"


def may_not_move(why: str) -> str:
    return f"this submodule cannot be moved: {why}"
