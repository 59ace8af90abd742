"""Commits that GitHub makes for us and signs, and the refs that move to them, never by force."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from bot.errors import GitHubRefused, NotFound
from bot.git.inspection import Change
from bot.github import writes
from bot.github.client import GitHubApp
from bot.github.types import FileChanges, MadeCommit, TokenPurpose
from bot.models import Thread

CHUNK = 100
"""The entries of a tree in one request: larger ones have timed out."""
InOrder = Callable[[Thread], AbstractAsyncContextManager[None]]
"""Holds the place of a change among the others at GitHub while the block lasts."""


class SignedCommits:
    """`clean` makes a message harmless. Every method may be repeated."""

    def __init__(self, app: GitHubApp, in_order: InOrder, clean: Callable[[str], str]) -> None:
        self._app = app
        self._in_order = in_order
        self._clean = clean

    async def make(
        self, thread: Thread, purpose: TokenPurpose, *, message: str, tree: str, parents: Sequence[str]
    ) -> MadeCommit:
        """Make a commit; GitHubRefused with 404 or 422 if GitHub does not know the tree."""
        at = self._app.installation(thread.installation)
        async with self._in_order(thread):
            fields = {"message": self._clean(message), "tree": tree, "parents": list(parents)}
            return await writes.create_commit(at, thread.repo, fields, purpose)

    async def make_tree(self, thread: Thread, purpose: TokenPurpose, base: str, changes: Sequence[Change]) -> str:
        """Make a tree from blobs that GitHub already has."""
        at, tree = self._app.installation(thread.installation), base
        for start in range(0, len(changes), CHUNK):
            entries: list[dict[str, str | None]] = []
            for change in changes[start : start + CHUNK]:
                mode = change.old_mode if change.is_deleted else change.new_mode
                kind, sha = "commit" if mode == "160000" else "blob", None if change.is_deleted else change.sha
                entries.append({"path": change.path, "mode": mode, "type": kind, "sha": sha})
            async with self._in_order(thread):
                tree = await writes.create_tree(at, thread.repo, tree, entries, purpose)
        return tree

    async def commit_on_branch(
        self, thread: Thread, purpose: TokenPurpose, branch: str, expected: str, *, message: str, files: FileChanges
    ) -> None:
        """Commit to the branch; GitHubRefused if it does not stand at `expected`."""
        at, text = self._app.installation(thread.installation), self._clean(message)
        async with self._in_order(thread):
            await writes.commit_on_branch(
                at, thread.repo, branch, expected=expected, message=text, files=files, purpose=purpose
            )

    async def set_branch(self, thread: Thread, purpose: TokenPurpose, branch: str, sha: str, *, new: bool) -> None:
        at = self._app.installation(thread.installation)
        async with self._in_order(thread):
            if new:
                await writes.create_ref(at, thread.repo, f"refs/heads/{branch}", sha, purpose)
            else:
                await writes.move_ref(at, thread.repo, f"heads/{branch}", sha, purpose)

    async def drop(self, thread: Thread, ref: str) -> None:
        """Delete a ref of ours that is no branch; it may be gone already."""
        at = self._app.installation(thread.installation)
        try:
            async with self._in_order(thread):
                await writes.delete_ref(at, thread.repo, ref.removeprefix("refs/"))
        except NotFound:
            return
        except GitHubRefused as refused:
            if refused.status != 422:  # "Reference does not exist"
                raise
