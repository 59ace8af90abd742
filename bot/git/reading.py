"""Reads commits and single files out of a mirror through GitPython's objects; blocking, so it runs in threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bot.git.errors import MirrorLost
from bot.git.run import Io, environment

if TYPE_CHECKING:
    from git import Commit


@dataclass(frozen=True)
class CommitFacts:
    sha: str
    subject: str
    author: str
    parents: tuple[str, ...]


def read_file(mirror: Path, sha: str, path: str, max_bytes: int) -> bytes | None:
    with _commit(mirror, sha) as commit:
        try:
            found = commit.tree.join(path)
        except KeyError:
            return None
        if found.type != "blob" or found.mode & 0o170000 != 0o100000 or found.size > max_bytes:
            return None
        return bytes(found.data_stream.read())


def describe(mirror: Path, sha: str) -> CommitFacts:
    with _commit(mirror, sha) as commit:
        subject = str(commit.summary)
        parents = tuple(parent.hexsha for parent in commit.parents)
        return CommitFacts(commit.hexsha, subject, str(commit.author.name or ""), parents)


@contextlib.contextmanager
def _commit(mirror: Path, sha: str) -> Iterator[Commit]:
    """GitPython asks one `git cat-file`, which is given our environment over the one that it inherits."""
    from git import Repo
    from git.exc import GitError, ODBError

    try:
        with Repo(mirror) as repo:
            repo.git.update_environment(**environment(mirror, None, Io()))
            yield repo.commit(sha)
    except (GitError, ODBError, ValueError):
        raise MirrorLost("the commit is not in the cache, or the cache is damaged") from None
