"""A private repository in which what came out of an environment is judged, committed and pushed."""

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
from bot.git.run import RemoteAccess, run_git


class Quarantine:
    """Made by `RepositoryCache.quarantine`; objects of the mirror are visible in it, nothing of it is in the mirror."""

    def __init__(self, place: Path, mirror: Path, max_bytes: int) -> None:
        self._dir, self._mirror = place, mirror
        self._max_bytes = max_bytes

    @classmethod
    async def create(cls, place: Path, mirror: Path, max_bytes: int = pack.MOST_BYTES) -> Quarantine:
        await run_git(["init", "--quiet", "--bare", "--template=", "--object-format=sha1", str(place)])
        await asyncio.to_thread(_borrow, place, mirror)
        return cls(place, mirror, max_bytes)

    async def look_again(self) -> None:
        """The mirror has fetched since: its history ends elsewhere now."""
        await asyncio.to_thread(_borrow, self._dir, self._mirror)

    async def admit(self, bundle: Path, *, base: str, limits: ImportLimits | None = None) -> str:
        """Take in a bundle and say which tree its one commit has; BundleRefused with a sentence otherwise."""
        return await admission.admit(self._dir, bundle, base, limits or ImportLimits())

    async def readmit(self, bundle: Path, commit: str, *, limits: ImportLimits | None = None) -> str:
        """Take in a bundle that `keep` has written, and say which tree the commit has that it must hold."""
        return await admission.readmit(self._dir, bundle, commit, limits or ImportLimits())

    async def changes(self, base: str, tree: str, *, max_files: int = 100_000) -> list[Change]:
        return await inspection.changes(self._dir, base, tree, max_files=max_files)

    async def paths(self, tree: str) -> Names:
        """All files of a tree, for a look at names that could be mistaken for each other."""
        return await inspection.paths(self._dir, tree)

    async def blob(self, sha: str, *, max_bytes: int = 1 << 20) -> bytes | None:
        """A file's content; None when it is larger than the cap."""
        return await inspection.blob(self._dir, sha, max_bytes)

    def blobs(self, changes: Sequence[Change], *, max_bytes: int = 50 << 20) -> AsyncIterator[tuple[Change, bytes]]:
        """The new contents for the secret scan; left out are files over the cap, which the push policy holds."""
        return inspection.blobs(self._dir, changes, max_bytes)

    async def patch(self, base: str, tree: str, max_bytes: int, *, paths: Sequence[str] = ()) -> bytes:
        """The change (of these paths, or whole) as a patch for `git apply`; cut at a line end when it is larger."""
        return await inspection.patch(self._dir, base, tree, max_bytes, paths)

    async def mail(self, commit: str, target: Path, *, max_bytes: int) -> None:
        """Write the commit as a patch that `git am` and `git apply` take."""
        await commits.mail(self._dir, commit, target, max_bytes)

    async def commit(self, tree: str, parents: Sequence[str], message: str, author: Author, when: int) -> str:
        """Our own commit over a tree: the same inputs make the same commit, whoever runs it and whenever."""
        return await commits.make(self._dir, tree, parents, message, author=author, when=when)

    async def facts(self, commit: str) -> Facts:
        """Of a commit of our own, or of the repository."""
        return await commits.facts(self._dir, commit)

    async def with_file(self, commit: str, path: str, content: bytes) -> str:
        """The tree of a commit with a file of ours put in."""
        return await commits.with_file(self._dir, commit, path, content)

    async def reverted(self, commit: str, before: str, tip: str) -> str | None:
        """The tree of `tip` without what `commit` did over `before`; None where later changes are in the way."""
        return await commits.reverted(self._dir, commit, before, tip)

    async def merged(self, over: str, ours: str, theirs: str) -> str | None:
        """The tree of `ours` with what `theirs` changed over `over`; None where they are in each other's way."""
        return await commits.merged(self._dir, over, ours, theirs)

    async def merge_base(self, one: str, other: str) -> str | None:
        return await commits.merge_base(self._dir, one, other)

    async def parents(self, commit: str) -> list[str]:
        return await commits.parents(self._dir, commit)

    async def marked(self, tree: str, joined: Joined) -> list[str]:
        """Files of the tree in which lines are left that mark a conflict, or whose name does."""
        return await commits.marked(self._dir, tree, joined)

    async def left(self, tree: str, joined: Joined) -> Left:
        """What of the conflicts stands in the tree as git has put it."""
        return await commits.left(self._dir, tree, joined)

    async def continues(self, commit: str, ancestor: str) -> bool:
        return await commits.continues(self._dir, commit, ancestor)

    async def made_at(self, after: str, head: str, when: int, *, or_one_of: Collection[str] = ()) -> list[Made]:
        """Commits between the two that may be ours, by their date or their name."""
        return await commits.made_at(self._dir, after, head, when, or_one_of)

    async def push(self, access: RemoteAccess, commit: str, branch: str, *, expect: str | None) -> PushResult:
        return await Push(self._dir, access, commit, branch, expect).run()

    def beginning(self, access: RemoteAccess, branch: str, at: str, *, mark: str, commit: str) -> Beginning:
        """Of a branch that is empty still, and has a ref beside it by which it is known to be ours."""
        return Beginning(self._dir, access, branch, at, mark, commit)

    async def require_free(self, access: RemoteAccess, branch: str) -> None:
        """PushRefused where a branch of the remote is in the way of that name on some system."""
        await remote.require_free(self._dir, access, branch)

    async def pack(self, commit: str, target: Path, *, depth: int = 50, had: Had | None = None) -> RepositoryPack:
        """A commit of ours with what came before it, for an environment to start from."""
        return await pack.write(self._dir, commit, target, Extent(depth, self._max_bytes, had))

    async def keep(self, commit: str, target: Path) -> None:
        """Write a bundle of one commit on top of its parents, which the operator's own clone has."""
        await commits.keep(self._dir, commit, target)


def _borrow(place: Path, mirror: Path) -> None:
    (place / "objects" / "info").mkdir(exist_ok=True)
    (place / "objects" / "info" / "alternates").write_text(f"{os.fspath(mirror.resolve())}/objects\n", "utf-8")
    # Alternates lend objects, not the knowledge of where the mirror's history was cut off.
    if (mirror / "shallow").exists():
        shutil.copyfile(mirror / "shallow", place / "shallow")
