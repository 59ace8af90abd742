"""A private repository in which we judge, commit and push the work from an environment."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path

from bot.git import admission, commits, inspection, pack, remote
from bot.git.admission import ImportLimits
from bot.git.commits import Author, Facts, Joined, Left, Made
from bot.git.inspection import Change, Names
from bot.git.pack import Extent, Had, RepositoryPack
from bot.git.remote import Beginning, Push, PushResult
from bot.git.run import RemoteAccess, init_bare


class Quarantine:
    """A repository of `RepositoryCache.quarantine`. It sees the mirror's objects, but the mirror sees none of its."""

    def __init__(self, place: Path, mirror: Path, max_bytes: int) -> None:
        self._dir, self._mirror, self._max_bytes = place, mirror, max_bytes

    @classmethod
    async def create(cls, place: Path, mirror: Path, max_bytes: int = pack.MOST_BYTES) -> Quarantine:
        await init_bare(place)
        await asyncio.to_thread(_borrow, place, mirror)
        return cls(place, mirror, max_bytes)

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

    async def patch(self, base: str, tree: str, max_bytes: int, *, paths: Sequence[str] = ()) -> bytes:
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
        """Return the tree of `tip` without what `commit` changed over `before`; None if later changes conflict."""
        return await commits.reverted(self._dir, commit, before, tip)

    async def merged(self, over: str, ours: str, theirs: str) -> str | None:
        """Return the tree of `ours` with what `theirs` changed over `over`; None if they conflict."""
        return await commits.merged(self._dir, over, ours, theirs)

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
        return await pack.write(self._dir, commit, target, Extent(depth, self._max_bytes, had))

    async def keep(self, commit: str, target: Path) -> None:
        """Write a bundle of one commit on top of its parents, which the operator's clone has."""
        await commits.keep(self._dir, commit, target)


def _borrow(place: Path, mirror: Path) -> None:
    (place / "objects" / "info").mkdir(exist_ok=True)
    (place / "objects" / "info" / "alternates").write_text(f"{os.fspath(mirror.resolve())}/objects\n", "utf-8")
    # Alternates lend objects, not the knowledge of where the mirror's history was cut off.
    if (mirror / "shallow").exists():
        shutil.copyfile(mirror / "shallow", place / "shallow")
