"""Git's objects on their way in and out: a private repository in which we judge, commit and push the work from an
environment, and the packs from which an environment starts."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bot.git import admission, commits, inspection, remote
from bot.git.admission import ImportLimits
from bot.git.commits import Author, Facts, Joined, Left, Made
from bot.git.errors import GitFailed, MirrorLost, RepositoryUnsupported
from bot.git.inspection import Change, Names, TreePatch
from bot.git.remote import Beginning, Push, PushResult
from bot.git.run import Io, RemoteAccess, init_bare, run_git

if TYPE_CHECKING:
    from bot.git.large_files import Pointed

MOST_BYTES = 4 << 30


class Quarantine:
    """A repository of `RepositoryCache.quarantine`. It sees the mirror's objects, but the mirror sees none of its."""

    def __init__(self, place: Path, mirror: Path, max_bytes: int) -> None:
        self._dir, self._mirror, self._max_bytes = place, mirror, max_bytes
        self.large: Pointed | None = None
        """What became of LFS files in the work, if its repository wants to know."""

    @classmethod
    async def create(cls, place: Path, mirror: Path, max_bytes: int = MOST_BYTES) -> Quarantine:
        await init_bare(place)
        await asyncio.to_thread(_borrow, place, mirror)
        return cls(place, mirror, max_bytes)

    @property
    def git_dir(self) -> Path:
        return self._dir

    async def look_again(self) -> None:
        """Learn where the mirror's history ends after another fetch."""
        await asyncio.to_thread(_borrow, self._dir, self._mirror)

    async def admit(self, bundle: Path, *, base: str, limits: ImportLimits | None = None) -> str:
        """Take in a bundle and return the tree of its one commit, or raise BundleRefused with a sentence."""
        return await admission.admit(self._dir, bundle, base, limits or ImportLimits())

    async def readmit(self, bundle: Path, commit: str, *, limits: ImportLimits | None = None) -> str:
        """Take in a bundle that `keep` wrote and that must hold `commit`, and return the commit's tree."""
        return await admission.readmit(self._dir, bundle, commit, limits or ImportLimits())

    async def changes(self, base: str, tree: str, *, max_files: int = 100_000) -> list[Change]:
        return await inspection.changes(self._dir, base, tree, max_files=max_files)

    async def paths(self, tree: str) -> Names:
        return await inspection.paths(self._dir, tree)

    async def blob(self, sha: str, *, max_bytes: int = 1 << 20) -> bytes | None:
        """Return a file's content; None if it is larger than the cap."""
        return await inspection.blob(self._dir, sha, max_bytes)

    def blobs(self, changes: Sequence[Change], *, max_bytes: int = 50 << 20) -> AsyncIterator[tuple[Change, bytes]]:
        """Yield new contents for the secret scan, except files over the cap, which the push policy holds."""
        return inspection.blobs(self._dir, changes, max_bytes)

    async def patch(self, base: str, tree: str, max_bytes: int, *, paths: Sequence[str] = ()) -> TreePatch:
        """Return the change (of these paths, or all) as a patch for `git apply`; a longer one is cut at a line end."""
        return await inspection.patch(self._dir, base, tree, max_bytes, paths)

    async def mail(self, commit: str, target: Path, *, max_bytes: int) -> None:
        """Write the commit as a patch for `git am` and `git apply`."""
        await commits.mail(self._dir, commit, target, max_bytes)

    async def commit(self, tree: str, parents: Sequence[str], message: str, author: Author, when: int) -> str:
        """Make a commit of ours; the same inputs always make the same commit."""
        return await commits.make(self._dir, tree, parents, message, author=author, when=when)

    async def facts(self, commit: str) -> Facts:
        return await commits.facts(self._dir, commit)

    async def with_file(self, commit: str, path: str, content: bytes) -> str:
        """Return the tree of a commit with one file of ours added."""
        return await commits.with_file(self._dir, commit, path, content)

    async def reverted(self, commit: str, before: str, tip: str) -> str | None:
        """Return the tree of `tip` without what `commit` changed since `before`; None if later changes conflict."""
        return await commits.reverted(self._dir, commit, before, tip)

    async def merged(self, base: str, ours: str, theirs: str) -> str | None:
        """Return the tree of `ours` with what `theirs` changed since `base`; None if they conflict."""
        return await commits.merged(self._dir, base, ours, theirs)

    async def merge_base(self, one: str, other: str) -> str | None:
        return await commits.merge_base(self._dir, one, other)

    async def parents(self, commit: str) -> list[str]:
        return await commits.parents(self._dir, commit)

    async def marked(self, tree: str, joined: Joined) -> list[str]:
        """List files of the tree that still have marks of a conflict, or a name that marks one."""
        return await commits.marked(self._dir, tree, joined)

    async def left(self, tree: str, joined: Joined) -> Left:
        """Find the conflicts that are in the tree as git left them."""
        return await commits.left(self._dir, tree, joined)

    async def continues(self, commit: str, ancestor: str) -> bool:
        return await commits.continues(self._dir, commit, ancestor)

    async def made_at(self, after: str, head: str, when: int, *, or_one_of: Collection[str] = ()) -> list[Made]:
        """List commits between the two that may be ours, by their date or SHA."""
        return await commits.made_at(self._dir, after, head, when, or_one_of)

    async def push(self, access: RemoteAccess, commit: str, branch: str, *, expect: str | None) -> PushResult:
        return await Push(self._dir, access, commit, branch, expect).run()

    def beginning(self, access: RemoteAccess, branch: str, at: str, *, mark: str, commit: str) -> Beginning:
        """Prepare a branch that is still empty, and a ref beside it that marks it as ours."""
        return Beginning(self._dir, access, branch, at, mark, commit)

    async def require_free(self, access: RemoteAccess, branch: str) -> None:
        """Raise PushRefused if some system cannot tell this name from a branch of the remote."""
        await remote.require_free(self._dir, access, branch)

    async def pack(self, commit: str, target: Path, *, depth: int = 50, had: Had | None = None) -> RepositoryPack:
        """Write a commit of ours with its history, from which an environment can start."""
        return await write_pack(self._dir, commit, target, Extent(depth, self._max_bytes, had))

    async def keep(self, commit: str, target: Path) -> None:
        """Write a bundle of one commit on top of its parents, which the operator's clone has."""
        await commits.keep(self._dir, commit, target)


def _borrow(place: Path, mirror: Path) -> None:
    (place / "objects" / "info").mkdir(exist_ok=True)
    (place / "objects" / "info" / "alternates").write_text(f"{os.fspath(mirror.resolve())}/objects\n", "utf-8")
    # Alternates lend objects, not the knowledge of where the mirror's history was cut off.
    if (mirror / "shallow").exists():
        shutil.copyfile(mirror / "shallow", place / "shallow")


PACK_SECONDS = 300.0
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


async def write_pack(mirror: Path, sha: str, target: Path, extent: Extent) -> RepositoryPack:
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
