"""Takes a folder as it is now into a repository of ours, without using the person's index, HEAD, hooks or filters.

It borrows the objects of the person's repository and copies the index, so that git knows unchanged files by their dates
and does not read them again. For a file that a filter has changed (LFS), the index counts.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from bot.errors import UserError
from bot.git import commits
from bot.git.commits import Author
from bot.git.errors import GitFailed
from bot.git.inspection import GITLINK
from bot.git.run import GitResult, Io, run_git
from bot.workbench import passage, plain, words
from bot.workbench.folder import Folder
from bot.workbench.waiting import unless_for_ever

AUTHOR = Author("Forgehand", "forgehand@localhost.invalid")
MOST_FILES = 200_000
MOST_BYTES = 2 << 30
LIST_CAP = 256 << 20
SECONDS = 600.0
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_OUTSIDE = {b"", b".", b"..", b".git"}
"""Never part of a file's path, but an index that was written by hand may name them."""
_MESSAGE = "The work tree as it was\n\nWith what was not committed when `forgehand execute` was started."


@dataclass(frozen=True)
class FolderSnapshot:
    """A commit in a bare repository of ours."""

    folder: Folder
    mirror: Path
    base: str
    left_out: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Return True if nothing was uncommitted: the agent starts from HEAD itself."""
        return self.folder.repository is not None and self.folder.repository.head == self.base


@dataclass
class _Paths:
    take: list[bytes] = field(default_factory=list)
    drop: list[bytes] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    kept: int = 0
    """How many entries stay as in the index: submodules, and files outside a sparse checkout."""
    size: int = 0


async def take(folder: Folder, mirror: Path, when: int) -> FolderSnapshot:
    scratch = _Scratch(folder, mirror)
    await scratch.create()
    try:
        paths = await scratch.paths()
    except GitFailed:
        paths = await scratch.paths_by_head()
    prefix = os.fsencode(folder.inside) + b"/"
    if folder.inside and not any(path.startswith(prefix) for path in paths.take):
        # the repository around the folder ignores it: take the folder alone
        await asyncio.to_thread(shutil.rmtree, mirror)
        return await take(folder.alone(), mirror, when)
    if not paths.take:
        raise UserError(words.empty_folder(folder.path))
    if len(paths.take) > MOST_FILES or paths.size > MOST_BYTES:
        raise UserError(words.too_much(folder.path, len(paths.take), paths.size))
    base = await scratch.commit(await scratch.tree(paths), when)
    return FolderSnapshot(folder, mirror, base, tuple(paths.left_out))


class _Scratch:
    """The bare repository, with the folder as its work tree."""

    def __init__(self, folder: Folder, mirror: Path) -> None:
        self._folder = folder
        self._mirror = mirror

    async def create(self) -> None:
        await run_git(["init", "--quiet", "--bare", "--template=", "--object-format=sha1", str(self._mirror)])
        (self._mirror / "info").mkdir(exist_ok=True)
        (self._mirror / "info" / "exclude").write_bytes(self._folder.ignored)
        if repository := self._folder.repository:
            await asyncio.to_thread(passage.lend, repository, self._mirror)
            await asyncio.to_thread(plain.copy_index, repository.git_dir, self._mirror)

    async def paths_by_head(self) -> _Paths:
        """List the files by HEAD, if git cannot use the person's index."""
        (self._mirror / "index").unlink(missing_ok=True)
        repository = self._folder.repository
        try:
            if repository is not None and repository.head is not None:
                await self._git("read-tree", repository.head)
            return await self.paths()
        except GitFailed as error:
            raise UserError(words.unreadable_files(self._folder.path, error.words)) from None

    async def paths(self) -> _Paths:
        known = await self._git("ls-files", "-z", "--stage", "-t")
        others = await self._git("ls-files", "-z", "--others", "--exclude-standard")
        if known.truncated or others.truncated:
            raise UserError(words.too_much(self._folder.path, MOST_FILES, MOST_BYTES))
        return await asyncio.to_thread(self._sorted, known.stdout.split(b"\0")[:-1], others.stdout.split(b"\0")[:-1])

    async def tree(self, paths: _Paths) -> str:
        try:
            await self._index(paths.drop, "--force-remove")
            await self._index(paths.take, "--add")
            return (await self._git("write-tree")).text
        except GitFailed as error:
            raise UserError(words.unreadable_files(self._folder.path, error.words)) from None

    async def commit(self, tree: str, when: int) -> str:
        head = self._folder.repository.head if self._folder.repository else None
        if tree == _EMPTY_TREE:
            raise UserError(words.empty_folder(self._folder.path))
        if head is not None and (await self._git("rev-parse", "--verify", f"{head}^{{tree}}")).text == tree:
            return head
        parents = [head] if head else []
        return await commits.make(self._mirror, tree, parents, _MESSAGE, author=AUTHOR, when=when)

    def _sorted(self, known: list[bytes], others: list[bytes]) -> _Paths:
        found = _Paths()
        for row in known:
            about, _, path = row.partition(b"\t")
            tag, mode = about.split(b" ")[:2]
            if not _OUTSIDE.isdisjoint(path.split(b"/")):
                raise GitFailed("ls-files", 0, "the index names what is no file of the folder")
            if mode == GITLINK.encode():
                found.left_out.append(os.fsdecode(path))
                found.kept += 1
            elif tag == b"S":
                found.kept += 1
            else:
                self._sort(path, found)
        for path in others:
            if path.endswith(b"/"):
                found.left_out.append(os.fsdecode(path))
            else:
                self._sort(path, found)
        found.take, found.drop = (list(dict.fromkeys(each)) for each in (found.take, found.drop))
        return found

    def _sort(self, path: bytes, found: _Paths) -> None:
        about = plain.about(os.fsencode(self._folder.top), path)
        if about is None:
            found.drop.append(path)
        else:
            found.take.append(path)
            found.size += about.st_size

    async def _index(self, paths: list[bytes], how: str) -> None:
        if paths:
            await self._git("update-index", how, "-z", "--stdin", stdin=b"".join(path + b"\0" for path in paths))

    async def _git(self, *argv: str, stdin: bytes = b"") -> GitResult:
        own = {"core.bare": "false", "core.untrackedCache": "false", "core.safecrlf": "false"}
        io = Io(
            stdin=stdin,
            cap=LIST_CAP,
            env={"GIT_WORK_TREE": str(self._folder.top), "GIT_LITERAL_PATHSPECS": "1"},
            config={**self._folder.settings, **own},
        )
        return await unless_for_ever(run_git(argv, self._mirror, io=io, timeout=SECONDS), self._folder.top)
