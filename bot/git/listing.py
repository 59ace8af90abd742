"""The names of all files of a tree, which may be small in git and endless when written out: counted as they come."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from bot.git.changes import decode
from bot.git.run import Io, run_git

LOOK_SECONDS = 120.0
LOOK_MEMORY = 1 << 30
"""Of git itself, where it compares: room for two files as large as it compares at all."""
MOST_PATHS = 1_000_000
MOST_NAME_BYTES = 64 << 20
"""Of all names together: a million files with folders have less."""


class Names(Collection[str]):
    """Held as git has said them; each is made into a word only while somebody looks at it."""

    def __init__(self, said: bytes | bytearray, count: int) -> None:
        self._said, self._count = said, count

    def __len__(self) -> int:
        return self._count

    def __contains__(self, path: object) -> bool:
        return any(path == one for one in self)

    def __iter__(self) -> Iterator[str]:
        start = 0
        while (end := self._said.find(b"\0", start)) >= 0:
            yield decode(bytes(self._said[start:end]))
            start = end + 1


class Count:
    """What comes in, up to the first part that is too much; `keep` holds on to it."""

    def __init__(self, max_paths: int, max_bytes: int = MOST_NAME_BYTES, *, keep: bool = False) -> None:
        self.paths = 0
        self.said = bytearray()
        self._size = 0
        self._max_paths, self._max_bytes, self._keep = max_paths, max_bytes, keep

    @property
    def is_bounded(self) -> bool:
        return self.paths <= self._max_paths and self._size <= self._max_bytes

    def take(self, part: bytes) -> bool:
        self.paths += part.count(b"\0")
        self._size += len(part)
        if self._keep and self.is_bounded:
            self.said += part
        return self.is_bounded


async def is_bounded(git_dir: Path, tree: str, max_paths: int = MOST_PATHS) -> bool:
    return (await _listed(git_dir, tree, Count(max_paths))).is_bounded


async def names(git_dir: Path, tree: str, max_paths: int = MOST_PATHS) -> Names | None:
    """None where they are too many."""
    found = await _listed(git_dir, tree, Count(max_paths, keep=True))
    return Names(found.said, found.paths) if found.is_bounded else None


async def _listed(git_dir: Path, tree: str, count: Count) -> Count:
    argv = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", tree]
    await run_git(argv, git_dir, io=Io(each=count.take), timeout=LOOK_SECONDS)
    return count
