"""The sentences about files of Git LFS: which stay pointers, and why some cannot be pushed."""

from __future__ import annotations

from collections.abc import Sequence

from bot.text.markup import named, shown

MOST_NAMED = 5


def too_large(paths: Sequence[str], most: int) -> str:
    return f"These LFS files stay pointers, because each has more than {most >> 20} MiB: {named(paths, MOST_NAMED)}."


def too_much(paths: Sequence[str], most: int) -> str:
    files = named(paths, MOST_NAMED)
    return f"These LFS files stay pointers, because all together have more than {most >> 20} MiB: {files}."


def too_many(most: int) -> str:
    return f"LFS files stay pointers, because the repository has more than {most:,} of them."


def missing(paths: Sequence[str]) -> str:
    return f"These LFS files stay pointers, because the repository has no content for them: {named(paths, MOST_NAMED)}."


def refused(status: int, words: str) -> str:
    return (
        f"GitHub does not give out the repository's LFS files (it answered {status}): {shown(words, 300)}. Change "
        "that, or set `lfs: false` in `.github/forgehand.yml`, and ask again."
    )


def not_uploaded(status: int, words: str) -> str:
    return (
        f"Nothing was pushed, because GitHub does not take the changed LFS files (it answered {status}): "
        f"{shown(words, 300)}. Change that and comment `/claude continue`; the work is kept."
    )


def locked(locks: Sequence[tuple[str, str]]) -> str:
    rows = [f"- {shown(path, 200)} by {shown(owner, 60)}" for path, owner in locks[:20]]
    return "\n".join(
        [
            "Nothing was pushed, because others hold locks of Git LFS on these files. Ask them to unlock, then comment "
            "`/claude continue`; the work is kept.",
            "",
            *rows,
        ]
    )


def unknown(paths: Sequence[str]) -> str:
    return (
        "Nothing was pushed, because these files are pointers of LFS to contents that the repository does not have: "
        f"{named(paths, MOST_NAMED)}. Put the content there instead, and ask again."
    )


def with_workflows() -> str:
    return (
        "Nothing was pushed, because the work changes workflow files, which wait for a yes, and LFS files, which "
        "cannot wait. Ask for one of the two, then for the other."
    )
