"""Reads commits and files of a mirror through GitPython, and compares two commits as a pull request does."""

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
import asyncio

from bot.git import inspection
from bot.git.errors import GitFailed, RepositoryUnsupported
from bot.git.inspection import decode
from bot.git.run import run_git


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


LOOK_SECONDS = 120.0
NAMES_BYTES = 32 << 20
_READABLE = ["--find-renames", "-l200", "--no-ext-diff", "--no-textconv", "--no-color"]


@dataclass(frozen=True)
class Comparison:
    """What `head` changes since it left `base`."""

    parted: str
    """Their merge base."""
    head: str
    patch: bytes
    cut: bool
    """The patch is longer."""
    paths: tuple[str, ...]
    """Old and new names of all that differs."""


async def compare(mirror: Path, base: str, head: str, max_bytes: int) -> Comparison | None:
    """None where the mirror's history is too short to tell where they parted."""
    found = await run_git(
        ["merge-base", "--end-of-options", base, head], mirror, accept=(0, 1, 128), timeout=LOOK_SECONDS
    )
    return await between(mirror, found.text, head, max_bytes) if found.exit_code == 0 else None


async def between(mirror: Path, old: str, head: str, max_bytes: int) -> Comparison:
    """How two commits differ, wherever they come from."""
    if not await inspection.is_bounded(mirror, head):
        raise RepositoryUnsupported(f"`{head[:12]}` holds more than {inspection.MOST_PATHS} files.")
    argv = ["diff-tree", "-r", "-p", *_READABLE, old, head]
    patch = await run_git(argv, mirror, io=Io(cap=max_bytes, max_memory=inspection.LOOK_MEMORY), timeout=LOOK_SECONDS)
    text = patch.stdout[: patch.stdout.rfind(b"\n") + 1] if patch.truncated else patch.stdout
    argv = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", old, head]
    names = await run_git(argv, mirror, io=Io(cap=NAMES_BYTES, max_memory=inspection.LOOK_MEMORY), timeout=LOOK_SECONDS)
    return Comparison(old, head, text, patch.truncated, await _names(names.stdout))


async def paths(mirror: Path, sha: str) -> tuple[str, ...]:
    """All files of a commit, as far as their names are of a bearable size together."""
    argv = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", sha]
    try:
        found = await run_git(argv, mirror, io=Io(cap=NAMES_BYTES), timeout=LOOK_SECONDS)
    except GitFailed:
        raise MirrorLost("the cached repository does not give out its files") from None
    return await _names(found.stdout)


async def _names(output: bytes) -> tuple[str, ...]:
    """In a thread: half a million of them take a while."""
    return await asyncio.to_thread(
        lambda: tuple(decode(name).encode("utf-8", "replace").decode() for name in output.split(b"\0")[:-1])
    )
