"""Writes a commit and those before it to a pack, from which an environment can start without any token."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from bot.git.errors import GitFailed, MirrorLost, RepositoryUnsupported
from bot.git.run import Io, run_git

PACK_SECONDS = 300.0
MOST_BYTES = 4 << 30
HISTORY_BYTES = 16 << 20


@dataclass(frozen=True)
class RepositoryPack:
    path: Path
    sha: str
    shallow: tuple[str, ...]
    """Commits whose parents are not in the pack; the `shallow` file of the other side lists them."""
    size: int


@dataclass(frozen=True)
class Had:
    """A commit that the other side already has, and the commits at which its history ends there."""

    sha: str
    shallow: tuple[str, ...]


@dataclass(frozen=True)
class Extent:
    """How much of a history to pack."""

    depth: int
    max_bytes: int
    had: Had | None = None


async def write(mirror: Path, sha: str, target: Path, extent: Extent) -> RepositoryPack:
    history = await _history(mirror, sha, extent.depth)
    shallow = boundary(sha, history, await asyncio.to_thread(read_shallow, mirror))
    had = extent.had
    ends = sorted({*shallow, *(had.shallow if had else ())})
    wanted = [*(f"--shallow {commit}" for commit in ends), sha, *([f"^{had.sha}"] if had else []), ""]
    try:
        size = await _pack_objects(mirror, "\n".join(wanted).encode(), target, extent)
    except BaseException:
        await asyncio.to_thread(target.unlink, missing_ok=True)
        raise
    return RepositoryPack(target, sha, shallow, size)


async def _history(mirror: Path, sha: str, depth: int) -> dict[str, tuple[str, ...]]:
    argv = ["rev-list", "--parents", f"--max-count={depth}", "--end-of-options", sha]
    try:
        result = await run_git(argv, mirror, io=Io(cap=HISTORY_BYTES), timeout=PACK_SECONDS)
    except GitFailed as error:
        raise MirrorLost(f"the cached repository does not give out the commit ({error.exit_code})") from None
    if result.truncated:
        raise RepositoryUnsupported("The repository's last commits have too many parents to be handled.")
    rows = (line.split() for line in result.text.splitlines())
    return {commit: tuple(parents) for commit, *parents in rows}


def boundary(sha: str, history: dict[str, tuple[str, ...]], cut: frozenset[str]) -> tuple[str, ...]:
    """Return the commits at which history ends on the other side, of those that `sha` reaches."""
    ends = {commit for commit, parents in history.items() if commit in cut or not history.keys() >= set(parents)}
    seen, waiting = {sha}, [sha]
    while waiting:
        commit = waiting.pop()
        parents = () if commit in ends else history[commit]
        fresh = set(parents) - seen
        seen |= fresh
        waiting.extend(fresh)
    return tuple(sorted(ends & seen))


def read_shallow(git_dir: Path) -> frozenset[str]:
    try:
        return frozenset((git_dir / "shallow").read_text(encoding="ascii").split())
    except FileNotFoundError:
        return frozenset()


async def _pack_objects(mirror: Path, wanted: bytes, target: Path, extent: Extent) -> int:
    argv = ["pack-objects", "--revs", "--stdout", "--delta-base-offset", "--quiet", *(["--thin"] if extent.had else [])]
    output = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        io = Io(stdin=wanted, stdout=output, max_file_bytes=extent.max_bytes)
        await run_git(argv, mirror, io=io, timeout=PACK_SECONDS)
        return os.fstat(output).st_size
    except GitFailed as error:
        if os.fstat(output).st_size >= extent.max_bytes:
            raise RepositoryUnsupported(
                f"The repository is too large: its last commits take more than {extent.max_bytes >> 20} MiB packed."
            ) from None
        raise MirrorLost(f"the cached repository could not be packed ({error.exit_code})") from None
    finally:
        os.close(output)
