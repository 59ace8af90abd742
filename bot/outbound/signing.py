"""Commits that GitHub makes for us and signs, and the refs that move to them, never by force."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from bot.errors import GitHubRefused, GitHubUnavailable, NotFound
from bot.git.inspection import Change
from bot.github import writes
from bot.github.client import GitHubApp
from bot.github.types import FileChanges, MadeCommit, TokenPurpose
from bot.models import InstallationId, RepoId, Thread

CHUNK = 100
"""The entries of a tree in one request: larger ones have timed out."""


class SignedCommits:
    """`clean` makes a message harmless. Every method may be repeated."""

    def __init__(self, app: GitHubApp, pace: WritePace, clean: Callable[[str], str]) -> None:
        self._app = app
        self._pace = pace
        self._clean = clean

    async def make(
        self, thread: Thread, purpose: TokenPurpose, *, message: str, tree: str, parents: Sequence[str]
    ) -> MadeCommit:
        """Make a commit; GitHubRefused with 404 or 422 if GitHub does not know the tree."""
        at = self._app.installation(thread.installation)
        async with self._pace.in_order(thread):
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
            async with self._pace.in_order(thread):
                tree = await writes.create_tree(at, thread.repo, tree, entries, purpose)
        return tree

    async def commit_on_branch(
        self, thread: Thread, purpose: TokenPurpose, branch: str, expected: str, *, message: str, files: FileChanges
    ) -> None:
        """Commit to the branch; GitHubRefused if it does not stand at `expected`."""
        at, text = self._app.installation(thread.installation), self._clean(message)
        async with self._pace.in_order(thread):
            await writes.commit_on_branch(
                at, thread.repo, branch, expected=expected, message=text, files=files, purpose=purpose
            )

    async def set_branch(self, thread: Thread, purpose: TokenPurpose, branch: str, sha: str, *, new: bool) -> None:
        at = self._app.installation(thread.installation)
        async with self._pace.in_order(thread):
            if new:
                await writes.create_ref(at, thread.repo, f"refs/heads/{branch}", sha, purpose)
            else:
                await writes.move_ref(at, thread.repo, f"heads/{branch}", sha, purpose)

    async def drop(self, thread: Thread, ref: str) -> None:
        """Delete a ref of ours that is no branch; it may be gone already."""
        at = self._app.installation(thread.installation)
        try:
            async with self._pace.in_order(thread):
                await writes.delete_ref(at, thread.repo, ref.removeprefix("refs/"))
        except NotFound:
            return
        except GitHubRefused as refused:
            if refused.status != 422:  # "Reference does not exist"
                raise


PATIENCE_SECONDS = 2.0
"""A change that takes longer holds up only its own thread. GitHub asks for one at a time. While it does not answer, a
few beside each other are far from the hundred that it allows."""


class WritePace:
    """Puts changes at GitHub in order. It lives in memory: after a restart the first refusal teaches it again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changing: WeakValueDictionary[InstallationId, asyncio.Lock] = WeakValueDictionary()
        self._threads: WeakValueDictionary[tuple[RepoId, int], asyncio.Lock] = WeakValueDictionary()
        self._paused_until: dict[InstallationId, float] = {}

    @asynccontextmanager
    async def in_order(self, thread: Thread) -> AsyncIterator[None]:
        """Wait for the changes before this one; during a pause, raise GitHubUnavailable with the time to wait."""
        of_thread = self._threads.setdefault((thread.repo.id, thread.number), asyncio.Lock())
        of_all = self._changing.setdefault(thread.installation, asyncio.Lock())
        async with of_thread, _for_a_while(of_all):
            wait = self.pause(thread.installation)
            if wait > 0:
                raise GitHubUnavailable("GitHub asked us to wait.", wait)
            try:
                yield
            except GitHubUnavailable as error:
                if error.retry_after is not None:
                    self._paused_until[thread.installation] = self._clock() + error.retry_after
                raise

    def pause(self, installation: InstallationId) -> float:
        """Return the seconds until changes may be made again."""
        return max(0.0, self._paused_until.get(installation, 0.0) - self._clock())


@asynccontextmanager
async def _for_a_while(lock: asyncio.Lock) -> AsyncIterator[None]:
    """Hold the lock to the end of the block, or until others have waited long enough."""
    await lock.acquire()
    held = True

    def let_go() -> None:
        nonlocal held
        if held:
            held = False
            lock.release()

    timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, let_go)
    try:
        yield
    finally:
        timer.cancel()
        let_go()
