"""Compares two commits of a mirror as a pull request does, from where they parted; all of it bounded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from bot.git import listing
from bot.git.changes import decode
from bot.git.errors import GitFailed, MirrorLost, RepositoryUnsupported
from bot.git.run import Io, run_git

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
    if not await listing.is_bounded(mirror, head):
        raise RepositoryUnsupported(f"`{head[:12]}` holds more than {listing.MOST_PATHS} files.")
    argv = ["diff-tree", "-r", "-p", *_READABLE, old, head]
    patch = await run_git(argv, mirror, io=Io(cap=max_bytes, max_memory=listing.LOOK_MEMORY), timeout=LOOK_SECONDS)
    text = patch.stdout[: patch.stdout.rfind(b"\n") + 1] if patch.truncated else patch.stdout
    argv = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", old, head]
    names = await run_git(argv, mirror, io=Io(cap=NAMES_BYTES, max_memory=listing.LOOK_MEMORY), timeout=LOOK_SECONDS)
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
