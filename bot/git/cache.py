"""Keeps one bare mirror per repository: fetches into it, replaces it when broken, reads commits and files from it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bot.errors import BotError, GitHubUnavailable
from bot.git import commits, folders, inspection, names, quarantine, remote
from bot.git.commits import Joined
from bot.git.errors import GitFailed, GitTimedOut, MirrorLost, RefMissing, RepositoryUnsupported
from bot.git.folders import FolderBounds, FolderContent
from bot.git.inspection import LOOK_MEMORY, LOOK_SECONDS, decode
from bot.git.quarantine import Extent, Had, Quarantine, RepositoryPack
from bot.git.remote import Removed
from bot.git.run import Io, RemoteAccess, environment, init_bare, run_git
from bot.models import RepoId

if TYPE_CHECKING:
    from git import Commit

FETCH_SECONDS = 600.0
NAMES_BYTES = 32 << 20
MAX_PACKS = 20
MAX_REPOSITORY_BYTES = quarantine.MOST_BYTES
_READABLE = ["--find-renames", "-l200", "--no-ext-diff", "--no-textconv", "--no-color"]
_DEPTH = "forgehand-depth"
"""A file in each mirror: the deepest history that was ever asked for, in commits."""


@dataclass(frozen=True)
class CommitFacts:
    sha: str
    subject: str
    author: str
    parents: tuple[str, ...]


@contextlib.contextmanager
def _commit(mirror: Path, sha: str) -> Iterator[Commit]:
    """Open a commit. GitPython starts one `git cat-file`; our environment overrides the one that it inherits."""
    from git import Repo
    from git.exc import GitError, ODBError

    try:
        with Repo(mirror) as repo:
            repo.git.update_environment(**environment(mirror, None, Io()))
            yield repo.commit(sha)
    except (GitError, ODBError, ValueError):
        raise MirrorLost("the commit is not in the cache, or the cache is damaged") from None


@dataclass(frozen=True)
class Comparison:
    """The difference between two commits: usually a merge base, `parted`, and `head`."""

    parted: str
    head: str
    patch: bytes
    cut: bool
    """The patch is longer than we read."""
    paths: tuple[str, ...]
    """Old and new names of everything that differs."""


async def _compare(mirror: Path, old: str, head: str, max_bytes: int) -> Comparison:
    if not await inspection.is_bounded(mirror, head):
        raise RepositoryUnsupported(f"`{head[:12]}` holds more than {inspection.MOST_PATHS} files.")
    argv = ["diff-tree", "-r", "-p", *_READABLE, old, head]
    patch = await run_git(argv, mirror, io=Io(cap=max_bytes, max_memory=LOOK_MEMORY), timeout=LOOK_SECONDS)
    text = patch.stdout[: patch.stdout.rfind(b"\n") + 1] if patch.truncated else patch.stdout
    argv = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", old, head]
    names = await run_git(argv, mirror, io=Io(cap=NAMES_BYTES, max_memory=LOOK_MEMORY), timeout=LOOK_SECONDS)
    return Comparison(old, head, text, patch.truncated, await _names(names.stdout))


async def _names(output: bytes) -> tuple[str, ...]:
    return await asyncio.to_thread(  # half a million of them take a while
        lambda: tuple(decode(name).encode("utf-8", "replace").decode() for name in output.split(b"\0")[:-1])
    )


class RepositoryCache:
    """All mirrors, under one folder that nobody else writes to."""

    def __init__(self, root: Path, *, max_bytes: int = MAX_REPOSITORY_BYTES) -> None:
        self._root, self._max_bytes = root, max_bytes
        self._locks: dict[RepoId, asyncio.Lock] = {}
        self._quarantines: Counter[RepoId] = Counter()

    async def sweep(self) -> None:
        """Remove the quarantines and half-removed mirrors that a killed process left."""
        await asyncio.to_thread(_remove_all, [*self._root.glob("quarantine-*"), *self._root.glob("trash-*")])

    async def fetch(self, repo_id: RepoId, access: RemoteAccess, ref: str, *, depth: int = 50) -> str:
        """Fetch at least the last `depth` commits of a branch, ref or commit, and return the SHA of the newest.

        Replace a broken mirror, once. A refusal of the remote is raised unchanged.
        """
        wanted = names.fetchable(ref)
        async with self._lock(repo_id):
            mirror = self._mirror(repo_id)
            if names.is_sha(wanted) and mirror.is_dir() and await self._has(mirror, wanted):
                return wanted
            for _ in range(2 if mirror.is_dir() else 1):
                try:
                    return await self._fetch(repo_id, access, wanted, depth)
                except GitFailed:
                    await self._discard(repo_id)
        raise GitHubUnavailable("the repository could not be fetched, for a reason that git did not make clear")

    async def has(self, repo_id: RepoId, sha: str) -> bool:
        mirror = self._mirror(repo_id)
        return mirror.is_dir() and await self._has(mirror, names.fetchable(sha))

    async def pack(
        self, repo_id: RepoId, sha: str, target: Path, *, depth: int = 50, had: Had | None = None
    ) -> RepositoryPack:
        """Write a pack without what the other side already `had`; ask `has` first whether we have that too."""
        async with self._lock(repo_id):
            try:
                return await quarantine.write_pack(
                    self._mirror(repo_id), sha, target, Extent(depth, self._max_bytes, had)
                )
            except MirrorLost:
                await self._discard(repo_id)
                raise

    @contextlib.asynccontextmanager
    async def quarantine(self, repo_id: RepoId) -> AsyncIterator[Quarantine]:
        """Open a private repository that borrows the mirror's objects, and remove it with its content at exit."""
        mirror = self._mirror(repo_id)
        if not mirror.is_dir():
            raise MirrorLost("the repository is not in the cache")
        place = self._root / f"quarantine-{repo_id}-{secrets.token_hex(8)}"
        self._quarantines[repo_id] += 1
        try:
            yield await Quarantine.create(place, mirror, self._max_bytes)
        finally:
            self._quarantines[repo_id] -= 1
            await asyncio.to_thread(_remove_all, [place])

    async def file(self, repo_id: RepoId, sha: str, path: str, *, max_bytes: int = 1 << 20) -> bytes | None:
        """Read a regular file from a fetched commit; None if it is missing or too large."""

        def read() -> bytes | None:
            with _commit(self._mirror(repo_id), sha) as commit:
                try:
                    found = commit.tree.join(path)
                except KeyError:
                    return None
                is_file = found.type == "blob" and found.mode & 0o170000 == 0o100000
                return bytes(found.data_stream.read()) if is_file and found.size <= max_bytes else None

        return await asyncio.to_thread(read)

    async def files(
        self, repo_id: RepoId, sha: str, paths: Sequence[str], *, max_bytes: int
    ) -> dict[str, inspection.TreeFile]:
        """Read files and links of a fetched commit, as far as they are there and small enough."""
        try:
            return await inspection.files(self._mirror(repo_id), sha, paths, max_bytes)
        except GitFailed:
            raise MirrorLost("the cached repository does not give out its files") from None

    async def paths(self, repo_id: RepoId, sha: str) -> tuple[str, ...]:
        """List the files of a commit, up to `NAMES_BYTES` of names."""
        argv = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", sha]
        try:
            found = await run_git(argv, self._mirror(repo_id), io=Io(cap=NAMES_BYTES), timeout=LOOK_SECONDS)
        except GitFailed:
            raise MirrorLost("the cached repository does not give out its files") from None
        return await _names(found.stdout)

    async def folder(self, repo_id: RepoId, sha: str, paths: Sequence[str], bounds: FolderBounds) -> FolderContent:
        """Read the regular files below some folders of a fetched commit."""
        return await folders.read(self._mirror(repo_id), sha, paths, bounds)

    async def compare(self, repo_id: RepoId, base: str, head: str, *, max_bytes: int) -> Comparison | None:
        """Compare `head` with its merge base with `base`; None if we fetched too little history to find that."""
        mirror = self._mirror(repo_id)
        parted = await commits.merge_base(mirror, base, head)
        return None if parted is None else await _compare(mirror, parted, head, max_bytes)

    async def difference(self, repo_id: RepoId, old: str, new: str, *, max_bytes: int) -> Comparison | None:
        """Compare two commits; None if the mirror lacks the older one."""
        return await _compare(self._mirror(repo_id), old, new, max_bytes) if await self.has(repo_id, old) else None

    async def join(self, repo_id: RepoId, ours: str, theirs: str) -> Joined | None:
        """Merge both, with the conflicts marked; None if we fetched too little history."""
        async with self._lock(repo_id):
            return await commits.join(self._mirror(repo_id), ours, theirs)

    async def side(self, repo_id: RepoId, parted: str, tip: str, paths: Sequence[str], *, max_bytes: int) -> str:
        """Describe what one side did to these files since `parted`: the subjects of its commits, and the diff."""
        return await commits.side(self._mirror(repo_id), parted, tip, paths, max_bytes)

    async def describe(self, repo_id: RepoId, sha: str) -> CommitFacts:
        def describe() -> CommitFacts:
            with _commit(self._mirror(repo_id), sha) as commit:
                parents = tuple(parent.hexsha for parent in commit.parents)
                return CommitFacts(commit.hexsha, str(commit.summary), str(commit.author.name or ""), parents)

        return await asyncio.to_thread(describe)

    async def remove_ref(self, access: RemoteAccess, ref: str, sha: str) -> Removed:
        """Remove a ref of ours at the remote if it points to this commit; this needs no mirror."""
        place = self._root / f"quarantine-none-{secrets.token_hex(8)}"
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            await init_bare(place)
            return await remote.remove_ref(place, access, ref, sha)
        finally:
            await asyncio.to_thread(_remove_all, [place])

    async def held(self) -> list[RepoId]:
        """List the repositories that lie here."""
        found = await asyncio.to_thread(lambda: sorted(self._root.glob("*.git")))
        return [RepoId(int(one.stem)) for one in found if one.stem.isdecimal()]

    async def remove(self, repo_id: RepoId) -> None:
        async with self._lock(repo_id):
            await self._discard(repo_id)

    def git_dir(self, repo_id: RepoId) -> Path:
        """Return a mirror's git directory, for those who only read."""
        return self._mirror(repo_id)

    def _lock(self, repo_id: RepoId) -> asyncio.Lock:
        return self._locks.setdefault(repo_id, asyncio.Lock())

    def _mirror(self, repo_id: RepoId) -> Path:
        return self._root / f"{int(repo_id)}.git"

    async def _has(self, mirror: Path, sha: str) -> bool:
        argv = ["rev-parse", "--quiet", "--verify", "--end-of-options", f"{sha}^{{tree}}"]
        return (await run_git(argv, mirror, accept=(0, 1, 128))).exit_code == 0

    async def _fetch(self, repo_id: RepoId, access: RemoteAccess, ref: str, depth: int) -> str:
        mirror = self._mirror(repo_id)
        if not mirror.is_dir():
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            await init_bare(mirror)
        deepest = await asyncio.to_thread(_deepest, mirror)
        # git cuts off what is deeper, for all branches that share it: then nobody can find their merge base.
        depth = max(depth, deepest)
        # One ref of ours per remote ref: names of branches cannot collide, and a moved one keeps its old objects.
        anchor = f"refs/forgehand/{hashlib.sha256(ref.encode()).hexdigest()[:16]}"
        flags = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-show-forced-updates"]
        argv = ["fetch", *flags, f"--depth={depth}", "--end-of-options", access.url, f"+{ref}:{anchor}"]
        try:
            io = Io(max_file_bytes=self._max_bytes)
            await run_git(argv, mirror, access=access, io=io, timeout=FETCH_SECONDS)
        except (GitFailed, GitTimedOut) as error:
            raise await self._explained(error, mirror, access, ref) from None
        if depth > deepest:
            await asyncio.to_thread((mirror / _DEPTH).write_text, str(depth), "ascii")
        packs = await asyncio.to_thread(lambda: len(list((mirror / "objects" / "pack").glob("*.pack"))))
        # Many small packs slow every command, but a quarantine may be reading one.
        if packs > MAX_PACKS and not self._quarantines[repo_id]:
            await run_git(["repack", "--geometric=2", "-d", "--quiet"], mirror, timeout=FETCH_SECONDS)
        return (await run_git(["rev-parse", "--verify", f"{anchor}^{{commit}}"], mirror)).text

    async def _explained(
        self, error: GitFailed | GitTimedOut, mirror: Path, access: RemoteAccess, ref: str
    ) -> BotError:
        if await asyncio.to_thread(_drop_partial, mirror) >= self._max_bytes:
            limit = self._max_bytes >> 20
            return RepositoryUnsupported(f"The repository is too large: {limit} MiB are the most that is fetched.")
        known = remote.failure(error)
        if isinstance(known, RefMissing):
            return remote.missing(ref, empty=await remote.is_empty(mirror, access))
        return known

    async def _discard(self, repo_id: RepoId) -> None:
        """Rename the mirror first, so that a command that still writes there writes into what we remove."""
        trash = self._root / f"trash-{secrets.token_hex(8)}"
        with contextlib.suppress(FileNotFoundError):
            self._mirror(repo_id).rename(trash)
        await asyncio.to_thread(_remove_all, [trash])


def _deepest(mirror: Path) -> int:
    """Return 0 also for a mirror that an earlier version made."""
    try:
        return int((mirror / _DEPTH).read_text("ascii"))
    except (OSError, ValueError):
        return 0


def _remove_all(folders: list[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _drop_partial(mirror: Path) -> int:
    """Remove what a fetch did not finish, and return the size of the largest piece."""
    largest = 0
    for leftover in (mirror / "objects").glob("*/tmp_*"):
        largest = max(largest, leftover.stat().st_size)
        leftover.unlink()
    return largest
